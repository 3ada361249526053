// npm's redlock, on one server or several. KIND `5` is its beta, whose calls have other names.
const Redis = require('ioredis');

module.exports = class {
  constructor(addresses, name, ttl, kind) {
    this.beta = kind === '5';
    const Redlock = this.beta ? require('redlock5').default : require('redlock');
    const servers = addresses.split(',').map(address => new Redis('redis://' + address));
    const pauses = {retryDelay: 20, retryJitter: 10};
    this.once = new Redlock(servers, {...pauses, retryCount: 0});
    this.patient = new Redlock(servers, {...pauses, retryCount: -1});
    this.name = name;
    this.ttl = ttl;
  }

  async take(seconds) {
    const redlock = seconds ? this.patient : this.once;
    try {
      this.lock = await (this.beta ? redlock.acquire([this.name], this.ttl) : redlock.lock(this.name, this.ttl));
      return true;
    } catch (error) {
      if (['LockError', 'ExecutionError'].includes(error.name)) return false;
      throw error;
    }
  }

  async give() {
    await (this.beta ? this.lock.release() : this.lock.unlock());
  }
};
