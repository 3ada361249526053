// Adds 10 to a balance in PostgreSQL, under a lock and behind a fence.
package main

import (
	"database/sql"
	"encoding/json"
	"log"
	"os"
	"os/exec"
	"time"

	_ "github.com/lib/pq"
)

var held struct{ Token, Lineage, Request string }
var database *sql.DB

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func behindTheFence(statement string, values ...any) (balance int) {
	tx, err := database.Begin() // one transaction; it enters before it reads
	check(err)
	_, err = tx.Exec("SELECT leasehold_fence.enter('account', $1, $2, $3)", held.Token, held.Lineage, held.Request)
	check(err)
	check(tx.QueryRow(statement, values...).Scan(&balance))
	check(tx.Commit())
	return balance
}

func main() {
	hold := exec.Command("leasehold", "hold", "account", "--fenced", "--ttl", "3s", "--wait", "1m")
	hold.Stderr = os.Stderr
	input, _ := hold.StdinPipe()
	events, _ := hold.StdoutPipe()
	check(hold.Start())
	if json.NewDecoder(events).Decode(&held) != nil {
		os.Exit(1) // busy, or no store: it has said why
	}
	database, _ = sql.Open("postgres", "sslmode=disable") // by PGHOST, PGDATABASE and so on
	balance := behindTheFence("SELECT balance FROM account")
	input.Write([]byte("beat\n"))      // at least every heartbeat_ms
	time.Sleep(700 * time.Millisecond) // the work
	behindTheFence("UPDATE account SET balance = $1 RETURNING balance", balance+10)
	input.Close() // releases the lock
	hold.Wait()
}
