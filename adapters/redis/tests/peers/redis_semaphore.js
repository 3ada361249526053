// npm's redis-semaphore. KIND is one of its classes; the semaphores are for one.
const Redis = require('ioredis');
const classes = require('redis-semaphore');

module.exports = class {
  constructor(addresses, name, ttl, kind) {
    const servers = addresses.split(',').map(address => new Redis('redis://' + address));
    const ones = {Semaphore: [1], RedlockSemaphore: [1], MultiSemaphore: [1, 1], RedlockMultiSemaphore: [1, 1]};
    const server = kind.startsWith('Redlock') ? servers : servers[0];
    const make = options => new classes[kind](server, name, ...(ones[kind] || []), options);
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
