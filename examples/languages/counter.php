#!/usr/bin/env php
<?php
// Adds 10 to a balance in PostgreSQL, under a lock and behind a fence.
$hold = proc_open(["leasehold", "hold", "account", "--fenced", "--ttl", "3s", "--wait", "1m"],
    [["pipe", "r"], ["pipe", "w"]], $pipes);
$line = fgets($pipes[1]) ?: exit(1);            // busy, or no store: it has said why
$held = json_decode($line);
$database = new PDO("pgsql:");                  // by PGHOST, PGDATABASE and so on

$behind_the_fence = function (string $sql, ...$values) use ($database, $held) {
    $database->beginTransaction();              // one transaction; it enters before it reads
    $database->prepare("SELECT leasehold_fence.enter('account', ?, ?, ?)")
        ->execute([$held->token, $held->lineage, $held->request]);
    $statement = $database->prepare($sql);
    $statement->execute($values);
    $value = $statement->fetchColumn();
    $database->commit();
    return $value;
};

$balance = $behind_the_fence("SELECT balance FROM account");
fwrite($pipes[0], "beat\n");                    // at least every heartbeat_ms
usleep(700000);                                 // the work
$behind_the_fence("UPDATE account SET balance = ? RETURNING balance", $balance + 10);
fclose($pipes[0]);                              // releases the lock
proc_close($hold);
