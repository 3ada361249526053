#!/usr/bin/env ruby
# Adds 10 to a balance in PostgreSQL, under a lock and behind a fence.
require "json"
require "pg"

hold = IO.popen(%w[leasehold hold account --fenced --ttl 3s --wait 1m], "r+")
line = hold.gets or exit 1                      # busy, or no store: it has said why
held = JSON.parse(line)
database = PG.connect                           # by PGHOST, PGDATABASE and so on

behind_the_fence = lambda do |sql, *values|     # one transaction; it enters before it reads
  database.transaction do
    database.exec_params("SELECT leasehold_fence.enter('account', $1, $2, $3)",
                         held.values_at("token", "lineage", "request"))
    database.exec_params(sql, values).getvalue(0, 0).to_i
  end
end

balance = behind_the_fence.call("SELECT balance FROM account")
hold.puts "beat"                                # at least every heartbeat_ms
sleep 0.7                                       # the work
behind_the_fence.call("UPDATE account SET balance = $1 RETURNING balance", balance + 10)
hold.close                                      # releases the lock, and waits for it
