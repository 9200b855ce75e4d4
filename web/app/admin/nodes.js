// The nodes of a cluster on the operator's page: what can be done with each, and how it is described. Pure.

/** @typedef {import('./state.js').ClusterNode} ClusterNode */
/** @typedef {import('./state.js').Nodes} Nodes */
/** @typedef {import('./strings.js').Strings['admin']} Words */
/** @typedef {'draining' | 'serving'} Service */

/** With an older reading of PostgreSQL (milliseconds), the asked node may know too little of the others. */
const longestSilence = 3000;

/** @type {Record<string, 'good' | 'fair'>} how good a state is; all others are bad */
const levels = { serving: 'good', draining: 'fair', drained: 'fair', stopping: 'fair', registering: 'fair' };

/** @param {string} state @returns {'good' | 'fair' | 'bad'} */
export const levelOf = (state) => levels[state] ?? 'bad';

/**
 * Returns the state that can be requested of a node: the other one than it has, or than was requested last. Null for a node that
 * cannot do anything any more. A node that also waits for PostgreSQL, or has just started, has another state while it is out of service.
 * @param {ClusterNode} node @returns {Service | null}
 */
export function offerOf({ state, requested, outOfService }) {
  if (state === 'fenced' || state === 'stopping') return null;
  const wanted = requested ?? (state === 'draining' || state === 'drained' || outOfService ? 'draining' : 'serving');
  return wanted === 'draining' ? 'serving' : 'draining';
}

/** @param {ClusterNode} node @param {Words} words */
export const stateText = ({ state }, words) => /** @type {Record<string, string>} */ (words.nodeStates)[state] ?? state;

/**
 * Returns the facts about a node with their names. Those that are not known are left out.
 * @param {ClusterNode} node @param {Words} words @param {string} language @returns {[string, string][]}
 */
export function factsOf(node, words, language) {
  const seconds = (/** @type {number | undefined} */ ms, digits = 0) => (
    ms === undefined ? undefined : words.seconds((ms / 1000).toLocaleString(language, { minimumFractionDigits: digits, maximumFractionDigits: digits })));
  const count = (/** @type {number | undefined} */ value) => value?.toLocaleString(language);
  const { facts } = words;
  /** @type {[string, string | undefined][]} */
  const all = [
    [facts.left, seconds(node.disconnectsInMs)], [facts.fencedBy, node.fencedBy], [facts.version, node.version], [facts.life, String(node.life)],
    [facts.lease, seconds(node.leaseMs, 1)], [facts.sockets, count(node.sockets)],
    [facts.load, node.load?.toLocaleString(language, { style: 'percent' })], [facts.places, count(node.places)],
    [facts.relays, node.relays && relaysText(node.relays, words, language)],
    [facts.address, node.address], [facts.url, node.url],
  ];
  return all.flatMap(([name, value]) => /** @type {[string, string][]} */ (value ? [[name, value]] : []));
}

/** @param {import('./state.js').Relays} relays @param {Words} words @param {string} language */
function relaysText({ connected, connecting }, words, language) {
  const parts = /** @type {const} */ ([['connected', connected], ['connecting', connecting]]).filter(([, count]) => count > 0);
  return parts.map(([state, count]) => words.relays[state](count.toLocaleString(language))).join(', ') || words.relays.none;
}

/** @param {ClusterNode} node @param {Words} words @returns {string | null} what is wrong with the relays to a node, and what to do */
export function relayTrouble({ node, relays }, words) {
  if (relays?.fault) {
    const known = /** @type {Record<string, (name: string) => string>} */ (words.relayFaults)[relays.fault];
    return (known ?? words.relayFaults.other)(node);
  }
  return relays?.thinned ? words.relayLosses(node) : null;
}

/** @param {Nodes} nodes @param {Words} words @returns {string} on what the list relies */
export function sourceText({ asked, seenMsAgo }, words) {
  if (seenMsAgo === undefined) return words.neverSeen(asked);
  return seenMsAgo > longestSilence ? words.lastSeen(asked, Math.floor(seenMsAgo / 1000)) : words.seen(asked);
}
