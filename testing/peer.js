// peer.js FILE ADDRESS NAME TTL_MS [KIND]: as peer.py, for Node.js. FILE exports the class; take() and give() are
// asynchronous.
const fs = require('fs');
const readline = require('readline');

const [file, address, name, ttl, ...kind] = process.argv.slice(2);
const lock = new (require(file))(address, name, Number(ttl), ...kind);

async function race(count, path) {
  for (let i = 0; i < Number(count); ++i) {
    if (!await lock.take(60)) return 'timeout';
    const number = Number(fs.readFileSync(path, 'utf8'));
    fs.writeFileSync(path, String(number + 1));
    await lock.give();
  }
  return 'done';
}

const orders = {
  try: async () => await lock.take(0) ? 'held' : 'busy',
  take: async () => await lock.take(60) ? 'held' : 'timeout',
  give: async () => {
    await lock.give();
    return 'free';
  },
  race,
};

(async () => {
  console.log('ready');
  for await (const line of readline.createInterface({input: process.stdin})) {
    const [order, ...words] = line.split(' ');
    console.log(await orders[order](...words).catch(error => 'error ' + error.message));
  }
  process.exit();  // nothing is released
})();
