#!/usr/bin/env node
// Adds 10 to a balance in PostgreSQL, under a lock and behind a fence.
const { spawn } = require("child_process");
const { once } = require("events");
const { Client } = require("pg");

async function main() {
  const hold = spawn("leasehold", ["hold", "account", "--fenced", "--ttl", "3s", "--wait", "1m"],
    { stdio: ["pipe", "pipe", "inherit"] });
  hold.stdin.on("error", () => {});             // it has ended: the lease is lost, the fence will say so
  const events = require("readline").createInterface({ input: hold.stdout });
  const first = await Promise.race([once(events, "line"), once(events, "close")]);
  if (!first.length) process.exit(1);           // busy, or no store: it has said why
  const held = JSON.parse(first[0]);
  const database = new Client();                // by PGHOST, PGDATABASE and so on
  await database.connect();

  async function behindTheFence(sql, values) {  // one transaction; it enters before it reads
    await database.query("BEGIN");
    await database.query("SELECT leasehold_fence.enter('account', $1, $2, $3)",
      [held.token, held.lineage, held.request]);
    const { rows } = await database.query(sql, values);
    await database.query("COMMIT");
    return rows[0].balance;
  }

  const balance = await behindTheFence("SELECT balance FROM account");
  hold.stdin.write("beat\n");                   // at least every held.heartbeat_ms
  await new Promise((done) => setTimeout(done, 700));  // the work
  await behindTheFence("UPDATE account SET balance = $1 RETURNING balance", [balance + 10]);
  hold.stdin.end();                             // releases the lock
  await database.end();
}
main();
