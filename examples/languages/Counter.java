// Adds 10 to a balance in PostgreSQL, under a lock and behind a fence.
import java.sql.*;
import java.util.regex.*;

public class Counter {
    static Connection database;
    static String held;

    static String field(String name) {          // or with a JSON library of your choice
        Matcher found = Pattern.compile("\"" + name + "\":\"([^\"]*)\"").matcher(held);
        return found.find() ? found.group(1) : null;
    }

    static int behindTheFence(String sql, Object... values) throws SQLException {
        query("SELECT leasehold_fence.enter('account', ?::bigint, ?, ?)",  // it enters before it reads
            field("token"), field("lineage"), field("request"));
        int balance = query(sql, values).getInt("balance");
        database.commit();
        return balance;
    }

    static ResultSet query(String sql, Object... values) throws SQLException {
        PreparedStatement statement = database.prepareStatement(sql);
        for (int i = 0; i < values.length; i++) statement.setObject(i + 1, values[i]);
        ResultSet rows = statement.executeQuery();
        rows.next();
        return rows;
    }

    public static void main(String[] arguments) throws Exception {
        Process hold = new ProcessBuilder("leasehold", "hold", "account", "--fenced", "--ttl", "3s", "--wait", "1m")
            .redirectError(ProcessBuilder.Redirect.INHERIT).start();
        held = hold.inputReader().readLine();
        if (held == null) System.exit(hold.waitFor());      // busy, or no store: it has said why
        database = DriverManager.getConnection(System.getenv("JDBC_URL"));
        database.setAutoCommit(false);
        int balance = behindTheFence("SELECT balance FROM account");
        hold.outputWriter().append("beat\n").flush();       // at least every heartbeat_ms
        Thread.sleep(700);                                  // the work
        behindTheFence("UPDATE account SET balance = ? RETURNING balance", balance + 10);
        hold.outputWriter().close();                        // releases the lock
        hold.waitFor();
    }
}
