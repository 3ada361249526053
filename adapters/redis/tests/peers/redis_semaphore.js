// npm's redis-semaphore. KIND: Mutex, Semaphore (for one), or RedlockMutex, on several servers.
const Redis = require('ioredis');
const {Mutex, RedlockMutex, Semaphore} = require('redis-semaphore');

module.exports = class {
  constructor(addresses, name, ttl, kind) {
    const servers = addresses.split(',').map(address => new Redis('redis://' + address));
    const make = {
      Mutex: options => new Mutex(servers[0], name, options),
      RedlockMutex: options => new RedlockMutex(servers, name, options),
      Semaphore: options => new Semaphore(servers[0], name, 1, options),
    }[kind];
    // It renews by itself, and stops when its process ends.
    const options = {lockTimeout: ttl, retryInterval: 10};
    this.once = make({...options, acquireAttemptsLimit: 1});
    this.patient = make({...options, acquireTimeout: 60000});
  }

  async take(seconds) {
    this.lock = seconds ? this.patient : this.once;
    return await this.lock.tryAcquire();
  }

  async give() {
    await this.lock.release();
  }
};
