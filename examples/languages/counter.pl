#!/usr/bin/perl
# Adds 10 to a balance in PostgreSQL, under a lock and behind a fence.
use strict;
use warnings;
use DBI;
use IPC::Open2;
use JSON::PP;

my $pid = open2(my $events, my $hold, qw(leasehold hold account --fenced --ttl 3s --wait 1m));
my $line = <$events> // exit 1;                 # busy, or no store: it has said why
my $held = decode_json($line);
my $database = DBI->connect("dbi:Pg:", undef, undef, {RaiseError => 1});  # by PGHOST and so on

sub behind_the_fence {                          # one transaction; it enters before it reads
    my ($sql, @values) = @_;
    $database->begin_work;
    $database->do("SELECT leasehold_fence.enter('account', ?, ?, ?)", undef,
        @$held{qw(token lineage request)});
    my ($value) = $database->selectrow_array($sql, undef, @values);
    $database->commit;
    return $value;
}

my $balance = behind_the_fence("SELECT balance FROM account");
print $hold "beat\n";                           # at least every heartbeat_ms
select(undef, undef, undef, 0.7);               # the work
behind_the_fence("UPDATE account SET balance = ? RETURNING balance", $balance + 10);
close $hold;                                    # releases the lock
waitpid $pid, 0;
