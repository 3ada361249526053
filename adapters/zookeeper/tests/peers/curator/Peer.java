import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreMutex;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.retry.RetryOneTime;

/** Curator's locks, driven by lines; testing/peer_conformance.h has the protocol. */
class Peer {
  static InterProcessLock lock;

  static String take(long wait) throws Exception {
    return lock.acquire(wait, TimeUnit.SECONDS) ? "held" : wait == 0 ? "busy" : "timeout";
  }

  static String give() throws Exception {
    lock.release();
    return "free";
  }

  static String race(int count, Path file) throws Exception {
    for (int i = 0; i < count; ++i) {
      if (!take(60).equals("held")) return "timeout";
      long number = Long.parseLong(Files.readString(file).trim());
      Files.writeString(file, Long.toString(number + 1));
      give();
    }
    return "done";
  }

  /** A semaphore of one lease, as a lock. */
  static InterProcessLock semaphoreOf(CuratorFramework client, String path) {
    InterProcessSemaphoreV2 semaphore = new InterProcessSemaphoreV2(client, path, 1);
    return new InterProcessLock() {
      private Lease lease;

      @Override
      public void acquire() throws Exception {
        lease = semaphore.acquire();
      }

      @Override
      public boolean acquire(long wait, TimeUnit unit) throws Exception {
        lease = semaphore.acquire(wait, unit);
        return lease != null;
      }

      @Override
      public void release() {
        semaphore.returnLease(lease);
        lease = null;
      }

      @Override
      public boolean isAcquiredInThisProcess() {
        return lease != null;
      }
    };
  }

  static InterProcessLock lockOf(CuratorFramework client, String path, String kind) {
    switch (kind) {
      case "semaphore": return new InterProcessSemaphoreMutex(client, path);
      case "semaphore_v2": return semaphoreOf(client, path);
      case "read": return new InterProcessReadWriteLock(client, path).readLock();
      case "write": return new InterProcessReadWriteLock(client, path).writeLock();
      default: return new InterProcessMutex(client, path);
    }
  }

  static String obey(String[] words, CuratorFramework client) throws Exception {
    switch (words[0]) {
      case "try": return take(0);
      case "take": return take(60);
      case "give": return give();
      case "race": return race(Integer.parseInt(words[1]), Path.of(words[2]));
      // One more than the protocol has, since a Java machine starts slowly: another lock.
      case "lock": lock = lockOf(client, words[1], words[2]); return "ready";
      default: return "unknown";
    }
  }

  public static void main(String[] args) throws Exception {
    CuratorFramework client =
        CuratorFrameworkFactory.newClient(
            args[0], Integer.parseInt(args[2]), 60_000, new RetryOneTime(100));
    client.start();
    client.blockUntilConnected();
    lock = lockOf(client, args[1], args.length > 3 ? args[3] : "mutex");
    System.out.println("ready");
    BufferedReader orders = new BufferedReader(new InputStreamReader(System.in));
    for (String line; (line = orders.readLine()) != null; ) {
      System.out.println(obey(line.split(" "), client));
    }
    Runtime.getRuntime().halt(0);  // without ending the session
  }
}
