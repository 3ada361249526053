// npm's redlock, on one server or several.
const Redis = require('ioredis');
const Redlock = require('redlock');

module.exports = class {
  constructor(addresses, name, ttl) {
    const servers = addresses.split(',').map(address => new Redis('redis://' + address));
    const pauses = {retryDelay: 20, retryJitter: 10};
    this.once = new Redlock(servers, {...pauses, retryCount: 0});
    this.patient = new Redlock(servers, {...pauses, retryCount: -1});
    this.name = name;
    this.ttl = ttl;
  }

  async take(seconds) {
    try {
      this.lock = await (seconds ? this.patient : this.once).lock(this.name, this.ttl);
      return true;
    } catch (error) {
      if (error.name === 'LockError') return false;
      throw error;
    }
  }

  async give() {
    await this.lock.unlock();
  }
};
