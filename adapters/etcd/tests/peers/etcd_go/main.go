// The concurrency.Mutex of etcd's Go client, as testing/peer_conformance.h drives it.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"go.etcd.io/etcd/clientv3"
	"go.etcd.io/etcd/clientv3/concurrency"
)

func must(err error) {
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
}

func main() {
	ttl, err := strconv.Atoi(os.Args[3])
	must(err)
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{os.Args[1]}, DialTimeout: 30 * time.Second})
	must(err)
	session, err := concurrency.NewSession(client, concurrency.WithTTL((ttl+999)/1000))
	must(err)
	mutex := concurrency.NewMutex(session, os.Args[2])

	take := func(wait time.Duration) bool {
		within, cancel := context.WithTimeout(context.Background(), wait)
		defer cancel()
		err := mutex.Lock(within)
		if err != nil && within.Err() == nil {
			must(err)
		}
		return err == nil
	}
	say := func(yes bool, good, bad string) {
		if yes {
			fmt.Println(good)
		} else {
			fmt.Println(bad)
		}
	}
	increment := func(file string) {
		text, err := os.ReadFile(file)
		must(err)
		number, err := strconv.Atoi(strings.TrimSpace(string(text)))
		must(err)
		must(os.WriteFile(file, []byte(strconv.Itoa(number+1)), 0o600))
	}

	fmt.Println("ready")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		words := strings.Fields(lines.Text())
		switch words[0] {
		case "try": // this version has no TryLock
			say(take(2*time.Second), "held", "busy")
		case "take":
			say(take(time.Minute), "held", "timeout")
		case "give":
			must(mutex.Unlock(context.Background()))
			fmt.Println("free")
		case "race":
			count, err := strconv.Atoi(words[1])
			must(err)
			for i := 0; i < count; i++ {
				must(mutex.Lock(context.Background()))
				increment(words[2])
				must(mutex.Unlock(context.Background()))
			}
			fmt.Println("done")
		}
	}
	os.Exit(0) // the session is not closed, so that its lease lasts
}
