// What the addresses of a server reveal about where it can be reached.

/**
 * @param {string} address an IP address and a port, such as `203.0.113.7:40000` or `[2001:db8::7]:40000`
 * @returns {string} the IP address, without brackets; empty if there is none
 */
export function hostOf(address) {
  return /^\[([^\]]+)\]:\d+$|^([^:]+):\d+$/.exec(address)?.slice(1).find(Boolean) ?? '';
}

/**
 * Returns whether a host can be reached only on its own machine or network: names without a dot or below `.localhost`, `.local`,
 * `.internal` and `.home.arpa` (RFC 6761, RFC 6762 and RFC 8375; ICANN reserved `.internal`), and the addresses of RFC 1918, RFC 3927,
 * RFC 4193 and RFC 6598. Many routers use `.lan`, but it is not reserved, so a name below it may be public one day.
 * @param {string} host a name or an IP address, with or without brackets
 */
export function isPrivateHost(host) {
  const plain = host.replace(/^\[|\]$/g, '').toLowerCase();
  if (plain.includes(':')) return /^(::1?$|f[cd]|fe[89ab])/.test(plain);
  const numbers = /^(\d{1,3})\.(\d{1,3})\.\d{1,3}\.\d{1,3}$/.exec(plain);
  if (!numbers) return !plain.includes('.') || /\.(localhost|local|internal|home\.arpa)$/.test(plain);
  const [first, second] = [Number(numbers[1]), Number(numbers[2])];
  return [0, 10, 127].includes(first) || (first === 172 && second >= 16 && second < 32) || (first === 192 && second === 168)
    || (first === 169 && second === 254) || (first === 100 && second >= 64 && second < 128);
}
