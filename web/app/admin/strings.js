// The text of the operator's page, in addition to the shared text. To translate: copy `en`, translate the values, and add the copy to
// `catalogs`.
import { stringsFor } from '../shared/strings.js';

const plural = new Intl.PluralRules('en');
/** @param {number} count @param {string} one @param {string} other */
const counted = (count, one, other) => `${count.toLocaleString('en')} ${plural.select(count) === 'one' ? one : other}`;

const en = {
  title: 'Confab – operator',
  headline: 'Operator',
  token: 'Token',
  doorHint: 'The token is in the file admin-token in the server’s data directory, or in the setting admin.token. It is kept only in this tab.',
  enter: 'Open',
  lock: 'Lock',
  close: 'Close',
  views: 'Views',
  errors: {
    missing: 'Enter the token.',
    wrong: 'This is not the token of this server.',
    unreachable: 'The server does not answer. Check that it runs, and try again.',
  },
  status: {
    locked: '',
    opening: 'Opening…',
    live: 'Live',
    stale: 'The server does not answer. Trying again…',
  },
  tabs: { overview: 'Overview', nodes: 'Nodes', reports: 'Reports', bans: 'Bans', sessions: 'Sessions', recordings: 'Recordings', audit: 'Audit log' },
  withCount: /** @param {string} name @param {number} count */ (name, count) => `${name} (${count})`,

  charts: {
    people: 'People online', clients: 'Connections', sessions: 'Sessions', rooms: 'Rooms', matches: 'Chats of strangers', waiting: 'Waiting for a stranger',
    calls: 'Calls', cores: 'CPU cores in use', bitsIn: 'Received', bitsOut: 'Sent', packets: 'Forwarded', switches: 'Layer changes', archives: 'Recordings', broadcasts: 'Broadcasts',
  },
  perSecond: /** @param {string} count */ (count) => `${count}/s`,
  unknown: 'unknown',
  range: /** @param {string} low @param {string} high */ (low, high) => `${low} to ${high} in the last hour`,
  chart: /** @param {string} name @param {string} now @param {string} range */ (name, now, range) => `${name}: ${now} now, ${range}`,
  about: /** @param {string} version @param {string} since */ (version, since) => `Confab ${version}, running since ${since}. Received and sent are media over UDP.`,

  certificateTrouble: /** @param {string} why */ (why) => `The server could not get a certificate. ${why}`,

  node: /** @param {string} name */ (name) => `Node ${name}`,
  askedNode: 'the server of this page',
  seen: /** @param {string} name */ (name) => `The nodes of the cluster, as ${name} knows them.`,
  lastSeen: /** @param {string} name @param {number} seconds */ (name, seconds) => `${name} has not reached PostgreSQL for ${counted(seconds, 'second', 'seconds')}. The other nodes may have changed since.`,
  neverSeen: /** @param {string} name */ (name) => `${name} has not reached PostgreSQL yet, so it does not know the other nodes.`,
  nodeStates: {
    serving: 'In service', draining: 'Draining', drained: 'Out of service', stopping: 'Stopping', registering: 'Starting', waiting: 'Waits for PostgreSQL',
    cut_off: 'Cut off from its clients', unknown: 'Not known', fenced: 'Ended',
  },
  requested: { draining: 'Drain requested', serving: 'Serve requested' },
  seconds: /** @param {string} number */ (number) => `${number} s`,
  facts: {
    left: 'Disconnects everyone in', fencedBy: 'Ended by', version: 'Version', life: 'Life', lease: 'Lease left', sockets: 'Sockets', load: 'Load', places: 'Places',
    relays: 'Relays', address: 'Address', url: 'URL',
  },
  relays: {
    connected: /** @param {string} count */ (count) => `${count} connected`,
    connecting: /** @param {string} count */ (count) => `${count} connecting`,
    none: 'none',
  },
  relayFaults: {
    unreachable: /** @param {string} name */ (name) => `A relay to ${name} does not connect: a firewall blocks UDP between the two nodes, or media.relayAddress is wrong. Allow UDP between their media ports in both directions. See docs/cluster.md.`,
    unanswered: /** @param {string} name */ (name) => `A relay to ${name} does not connect, because ${name} does not answer over Redis. Check ${name} and Redis. See docs/cluster.md.`,
    other: /** @param {string} name */ (name) => `A relay to ${name} does not connect. See docs/cluster.md.`,
  },
  relayLosses: /** @param {string} name */ (name) => `A relay to ${name} loses packets, so it does not carry the largest layers of videos. Check the network between the two nodes.`,
  change: { draining: 'Drain', serving: 'Serve' },
  changeNode: {
    draining: /** @param {string} name */ (name) => `Drain ${name}`,
    serving: /** @param {string} name */ (name) => `Serve from ${name} again`,
  },
  questions: {
    draining: /** @param {string} name */ (name) => `Take ${name} out of service? It gets no new clients. Those who are still there after cluster.drainGrace are disconnected, and connect to another node.`,
    serving: /** @param {string} name */ (name) => `Put ${name} back into service? It gets new clients again.`,
  },

  showClosed: 'Also show closed reports',
  noReports: 'No open reports.',
  noReportsAtAll: 'No reports.',
  report: /** @param {number} id */ (id) => `Report ${id}`,
  closed: /** @param {string} when */ (when) => `Closed ${when}`,
  banned: 'Banned',
  repeated: /** @param {number} count */ (count) => counted(count, 'report against this person', 'reports against this person'),
  reported: 'Reported person',
  reporter: 'Reporter',
  from: /** @param {string} address */ (address) => `from ${address}`,
  noReason: 'No reason given',
  evidence: /** @param {number} lines */ (lines) => (lines === 0 ? 'No messages in the chat' : counted(lines, 'message', 'messages')),
  reasonField: 'Reason (for your records)',
  duration: 'Duration',
  durations: { '1d': '1 day', '7d': '7 days', '30d': '30 days', '': 'Permanent' },
  ban: 'Ban',
  dismiss: 'Dismiss',
  warn: 'Warn',
  warningField: 'Sentence for the person (optional)',
  warnReport: /** @param {number} id */ (id) => `Warn the person of report ${id}`,
  showSample: 'Show the camera image',
  hideSample: 'Hide the camera image',
  sampleFailed: 'The image could not be loaded. Try again.',
  sampleOf: /** @param {number} id */ (id) => `Camera image of report ${id}`,
  sampled: /** @param {string} when @param {string} verdict */ (when, verdict) => `Camera image of ${when}. ${verdict}`,
  verdicts: {
    none: 'No verdict of the program.', ok: 'Latest verdict: ok.', warn: 'Latest verdict: warn.', blur: 'Latest verdict: blur.', end: 'Latest verdict: end.',
  },
  verdictCounts: /** @param {number} warnings @param {number} blurs */ (warnings, blurs) => `${counted(warnings, 'warning', 'warnings')} and ${counted(blurs, 'blur', 'blurs')} in this chat.`,
  banReport: /** @param {number} id */ (id) => `Ban the person of report ${id}`,
  dismissReport: /** @param {number} id */ (id) => `Dismiss report ${id}`,

  addBan: 'Add a ban',
  subject: 'Identity or IP address',
  subjectHint: '203.0.113.0/24',
  noBans: 'No bans.',
  moreBans: /** @param {number} shown @param {number} count */ (shown, count) => `The newest ${shown} of ${counted(count, 'ban', 'bans')}. confab ban list shows all.`,
  until: /** @param {string} when */ (when) => `until ${when}`,
  permanent: 'permanent',
  lift: 'Lift',
  liftBan: /** @param {string} subject */ (subject) => `Lift the ban of ${subject}`,

  noSessions: 'No one is in a session.',
  pages: 'Pages of sessions',
  previousPage: 'Previous',
  nextPage: 'Next',
  page: /** @param {number} first @param {number} last @param {number} count */ (first, last, count) => `${first} to ${last} of ${counted(count, 'session', 'sessions')}, the largest first`,
  room: /** @param {string} name */ (name) => `Room ${name}`,
  session: 'Session',
  modes: { routed: 'Through the server', relayed: 'Peer to peer' },
  recorded: 'Recorded',
  broadcast: 'Broadcast',
  members: /** @param {number} count */ (count) => counted(count, 'person', 'people'),
  streams: /** @param {number} count */ (count) => counted(count, 'stream', 'streams'),
  moreMembers: /** @param {number} count */ (count) => `and ${counted(count, 'other', 'others')}`,
  nameless: 'Participant',
  reconnecting: 'Reconnecting',
  watching: /** @param {number} count */ (count) => `receives ${counted(count, 'stream', 'streams')}`,
  sends: {
    both: 'sends audio and video', audio: 'sends audio', video: 'sends video', none: 'sends nothing now', screen: 'shares a screen',
  },
  levels: { good: 'Good', fair: 'Fair', poor: 'Poor' },
  qualityReasons: { loss: 'packets are lost', delay: 'packets arrive late', bandwidth: 'upload too slow' },
  switchesTitle: 'Latest changes of video layers',
  noSwitches: 'No changes yet.',
  switchReasons: {
    slow: 'the connection cannot keep up', codec: 'the codec cannot be decoded', bandwidth: 'the available bitrate changed',
    size: 'another size was requested', publisher: 'the publisher changed its layers',
  },
  switched: /** @param {string} what @param {string} why */ (what, why) => `${what}: ${why}`,
  paused: 'Video paused',
  layer: /** @param {string} name */ (name) => `Layer ${name}`,
  video: 'Video',
  receiver: /** @param {string} id */ (id) => `receiver ${id}`,

  archives: 'Recordings of the main project',
  broadcasts: 'Broadcasts of the main project',
  noArchives: 'No recordings.',
  noBroadcasts: 'No broadcasts.',
  noAudit: 'No entries.',
  done: {
    ban: /** @param {string} subject */ (subject) => `Banned ${subject}.`,
    dismiss: 'Report dismissed.',
    warn: 'Warning sent. The report is closed.',
    notWarned: 'This person is not connected to this server, so no warning was sent. The report stays open.',
    warningIgnored: 'The app that this person uses does not show warnings, so no warning was sent. The report stays open.',
    lift: /** @param {string} subject */ (subject) => `The ban of ${subject} was lifted.`,
    draining: /** @param {string} name */ (name) => `${name} is being taken out of service.`,
    serving: /** @param {string} name */ (name) => `${name} is being put back into service.`,
  },
};

/** @typedef {import('../shared/strings.js').Strings & {admin: typeof en}} Strings */

/** @type {Record<string, typeof en>} */
const catalogs = { en };

/** @param {readonly string[]} languages @returns {{language: string, strings: Strings}} */
export function adminStringsFor(languages) {
  const { language, strings } = stringsFor(languages.filter((tag) => tag.split('-')[0].toLowerCase() in catalogs));
  return { language, strings: { ...strings, admin: catalogs[language] } };
}
