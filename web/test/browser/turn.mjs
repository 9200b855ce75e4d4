// coturn, with time-limited credentials.
import { Child } from './process.mjs';
import { freePort } from './server.mjs';
import { NotYet, until } from './wait.mjs';

const secret = 'a-secret-that-only-this-test-knows';

/**
 * Starts a TURN server that runs until the test ends.
 *
 * @param {object} options
 * @param {string} options.address where it listens and relays. Not a loopback address, because some browsers cannot reach a TURN
 *   server there.
 * @param {{certificate: string, key: string, port: number}} [options.tls] the PEM files and the port for TLS. Then it takes nothing
 *   else.
 * @param {import('./namespace.mjs').Machine} [options.machine] where it runs
 * @returns {Promise<{child: Child, port: number, env: (...urls: string[]) => Record<string, string>}>} `env`: the server's settings
 */
export async function startTurn(t, { address, tls, machine }) {
  const port = await freePort();
  const secured = tls && [
    '--tls-listening-port', String(tls.port), '--cert', tls.certificate, '--pkey', tls.key, '--no-udp', '--no-tcp', '--no-dtls',
  ];
  const child = new Child('turnserver', [
    '-n', '--listening-ip', address, '--relay-ip', address, '--listening-port', String(port), '--realm', 'confab.test',
    '--use-auth-secret', '--static-auth-secret', secret, ...secured ?? ['--no-tls', '--no-dtls'], '--no-cli', '--no-tcp-relay',
    '--log-file', 'stdout', '--simple-log', '--pidfile', '', '--verbose',
  ], { machine });
  t.after(() => child.kill());
  const listens = tls ? /IPv4\. (TLS\/)?(SCTP|TCP|TLS).*listener opened/ : /IPv4\. UDP listener opened/;
  await until('coturn listens', async () => {
    if (child.ended) throw new Error(`coturn ended:\n${child.tail()}`);
    if (!child.log.some((line) => listens.test(line))) throw new NotYet(child.tail(3));
    return true;
  });
  return {
    child, port,
    env: (...urls) => ({ CONFAB_ICE_TURN_SERVERS: urls.join(','), CONFAB_ICE_TURN_SECRET: secret }),
  };
}
