// npm's redlock 5, a beta whose calls are other ones than those of redlock 4.
const Redis = require('ioredis');
const {default: Redlock, ExecutionError} = require('redlock5');

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
      this.lock = await (seconds ? this.patient : this.once).acquire([this.name], this.ttl);
      return true;
    } catch (error) {
      if (error instanceof ExecutionError) return false;
      throw error;
    }
  }

  async give() {
    await this.lock.release();
  }
};
