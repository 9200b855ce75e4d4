// WebRTC statistics in OpenTok's format.

/** @typedef {Record<string, any>} Entry */
/** @typedef {{packetsSent: number, packetsLost: number, bytesSent: number, frameRate?: number}} Sent */
/** @typedef {{packetsReceived: number, packetsLost: number, bytesReceived: number, frameRate?: number}} Received */

/** @param {Iterable<{forEach: (visit: (entry: any) => void) => void}>} reports @returns {Entry[]} */
function entriesOf(reports) {
  /** @type {Entry[]} */
  const entries = [];
  for (const report of reports) report.forEach((entry) => entries.push(entry));
  return entries;
}

/** @param {Entry[]} entries @param {string} name */
function sum(entries, name) {
  return entries.reduce((total, entry) => total + (entry[name] ?? 0), 0);
}

/** @param {Entry[]} entries */
function timestampOf(entries) {
  return Math.max(0, ...entries.map(({ timestamp }) => timestamp ?? 0));
}

/** @param {Entry[]} entries */
function frameRateOf(entries) {
  return Math.max(0, ...entries.map(({ framesPerSecond }) => framesPerSecond ?? 0));
}

/**
 * @param {Iterable<any>} reports one `RTCStatsReport` for each sender
 * @returns {{audio: Sent, video: Sent, timestamp: number}}
 */
export function publisherStats(reports) {
  const entries = entriesOf(reports);
  /** @param {string} kind @returns {Sent} */
  const of = (kind) => {
    const sent = entries.filter((entry) => entry.type === 'outbound-rtp' && entry.kind === kind);
    const seen = entries.filter((entry) => entry.type === 'remote-inbound-rtp' && entry.kind === kind);
    return { packetsSent: sum(sent, 'packetsSent'), packetsLost: sum(seen, 'packetsLost'), bytesSent: sum(sent, 'bytesSent') };
  };
  const video = entries.filter((entry) => entry.type === 'outbound-rtp' && entry.kind === 'video');
  return { audio: of('audio'), video: { ...of('video'), frameRate: frameRateOf(video) }, timestamp: timestampOf(entries) };
}

/**
 * @param {Iterable<any>} reports one `RTCStatsReport` for each receiver
 * @returns {{audio: Received, video: Received, timestamp: number}}
 */
export function subscriberStats(reports) {
  const entries = entriesOf(reports);
  /** @param {string} kind @returns {Received} */
  const of = (kind) => {
    const got = entries.filter((entry) => entry.type === 'inbound-rtp' && entry.kind === kind);
    return {
      packetsReceived: sum(got, 'packetsReceived'), packetsLost: sum(got, 'packetsLost'), bytesReceived: sum(got, 'bytesReceived'),
    };
  };
  const video = entries.filter((entry) => entry.type === 'inbound-rtp' && entry.kind === 'video');
  return { audio: of('audio'), video: { ...of('video'), frameRate: frameRateOf(video) }, timestamp: timestampOf(entries) };
}
