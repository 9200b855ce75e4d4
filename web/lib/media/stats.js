// WebRTC statistics in OpenTok's format, and the counters by which the quality is judged.

/** @typedef {Record<string, any>} Entry */
/** @typedef {Iterable<{forEach: (visit: (entry: any) => void) => void}>} Reports one `RTCStatsReport` for each track */
/** @typedef {import('./condition.js').Condition} Condition */
/**
 * In this type and those below, times are in milliseconds and bitrates in bit/s. A member is undefined while the
 * browser does not report it.
 * @typedef {{packetsSent: number, packetsLost: number, bytesSent: number, roundTripTime?: number, jitter?: number}} Sent
 */
/** @typedef {{packetsReceived: number, packetsLost: number, bytesReceived: number, jitter?: number}} Received */
/**
 * A layer that a publisher encodes.
 * @typedef {object} VideoLayerStats
 * @property {string} [rid]
 * @property {number} [width]
 * @property {number} [height]
 * @property {number} [encodedFrameRate]
 * @property {number} [bitrate] the encoder's target
 * @property {string} [qualityLimitationReason] 'none', 'cpu', 'bandwidth' or 'other'
 */
/** @typedef {{roundTripTime?: number, connectionEstimatedBandwidth?: number} & Condition} TransportStats */

/** @param {Reports} reports @returns {Entry[]} */
function entriesOf(reports) {
  /** @type {Map<string, Entry>} */
  const entries = new Map();
  // Several reports contain the same transport, so keep one entry for each id.
  for (const report of reports) report.forEach((entry) => entries.set(entry.id ?? `${entries.size}`, entry));
  return [...entries.values()];
}

/** @param {Entry[]} entries @param {string} name */
function sum(entries, name) {
  return entries.reduce((total, entry) => total + (entry[name] ?? 0), 0);
}

/**
 * @param {Entry[]} entries
 * @param {string} name
 * @param {number} [factor]
 * @returns {number | undefined} the largest value, multiplied by `factor`; undefined if no entry has a value
 */
function largest(entries, name, factor = 1) {
  const values = entries.map((entry) => entry[name]).filter((value) => typeof value === 'number');
  return values.length === 0 ? undefined : Math.max(...values) * factor;
}

/** @param {Entry[]} entries */
function timestampOf(entries) {
  return Math.max(0, ...entries.map(({ timestamp }) => timestamp ?? 0));
}

/** @param {Entry[]} entries @param {string} type @param {string} [kind] */
function select(entries, type, kind) {
  return entries.filter((entry) => entry.type === type && (kind === undefined || entry.kind === kind));
}

/** @param {Entry[]} entries @returns {Entry[]} the candidate pairs in use, one for each transport */
function selectedPair(entries) {
  const pairs = select(entries, 'candidate-pair');
  const ids = select(entries, 'transport').map(({ selectedCandidatePairId }) => selectedCandidatePairId);
  // Firefox marks the pair itself as `selected`. Other browsers name the pair in the transport's entry.
  return pairs.filter(({ id, selected }) => selected || ids.includes(id));
}

/**
 * @param {Entry[]} entries
 * @param {Condition} condition
 * @param {number | undefined} bandwidth the estimated bandwidth in the direction of the media
 * @returns {TransportStats}
 */
function transportStats(entries, condition, bandwidth) {
  const pair = selectedPair(entries);
  const roundTrips = pair.length > 0 ? largest(pair, 'currentRoundTripTime', 1000) : undefined;
  return {
    roundTripTime: roundTrips ?? largest(select(entries, 'remote-inbound-rtp'), 'roundTripTime', 1000),
    connectionEstimatedBandwidth: bandwidth, ...condition,
  };
}

/**
 * Returns the entries of the video layers being sent; all layers if the browser does not report which ones are active.
 * @param {Entry[]} entries
 */
const activeVideo = (entries) => select(entries, 'outbound-rtp', 'video').filter(({ active }) => active !== false);

/**
 * @param {Reports} reports one `RTCStatsReport` for each sender
 * @param {Condition} condition
 * @returns {{audio: Sent, video: Sent & {frameRate: number, layers: VideoLayerStats[]}, transport: TransportStats, timestamp: number}}
 */
export function publisherStats(reports, condition) {
  const entries = entriesOf(reports);
  /** @param {string} kind @returns {Sent} */
  const of = (kind) => {
    const sent = select(entries, 'outbound-rtp', kind);
    const seen = select(entries, 'remote-inbound-rtp', kind);
    return {
      packetsSent: sum(sent, 'packetsSent'), packetsLost: sum(seen, 'packetsLost'), bytesSent: sum(sent, 'bytesSent'),
      roundTripTime: largest(seen, 'roundTripTime', 1000), jitter: largest(seen, 'jitter', 1000),
    };
  };
  const layers = activeVideo(entries).map(({ rid, frameWidth, frameHeight, framesPerSecond, targetBitrate, qualityLimitationReason }) => ({
    rid, width: frameWidth, height: frameHeight, encodedFrameRate: framesPerSecond, bitrate: targetBitrate, qualityLimitationReason,
  }));
  const frameRate = largest(activeVideo(entries), 'framesPerSecond') ?? 0;
  const transport = transportStats(entries, condition, largest(selectedPair(entries), 'availableOutgoingBitrate'));
  return { audio: of('audio'), video: { ...of('video'), frameRate, layers }, transport, timestamp: timestampOf(entries) };
}

/**
 * Why a subscriber gets its current layer, as last reported by the server.
 * @typedef {{qualityLimitationReason: string, rid?: string, temporalLayer?: number}} Limitation
 */
/** @typedef {Received & Limitation & {frameRate: number, width?: number, height?: number, freezeCount: number, totalFreezesDuration: number}} ReceivedVideo */

/**
 * @param {Reports} reports one `RTCStatsReport` for each receiver
 * @param {Condition} condition
 * @param {Limitation} limitation
 * @param {number} [estimate] the bandwidth from the server, in bit/s, if the server has an estimate
 * @returns {{audio: Received, video: ReceivedVideo, transport: TransportStats, timestamp: number}}
 */
export function subscriberStats(reports, condition, limitation, estimate) {
  const entries = entriesOf(reports);
  /** @param {string} kind @returns {Received} */
  const of = (kind) => {
    const got = select(entries, 'inbound-rtp', kind);
    return {
      packetsReceived: sum(got, 'packetsReceived'), packetsLost: sum(got, 'packetsLost'), bytesReceived: sum(got, 'bytesReceived'),
      jitter: largest(got, 'jitter', 1000),
    };
  };
  const got = select(entries, 'inbound-rtp', 'video');
  const video = {
    ...of('video'), frameRate: largest(got, 'framesPerSecond') ?? 0, width: largest(got, 'frameWidth'), height: largest(got, 'frameHeight'),
    freezeCount: sum(got, 'freezeCount'), totalFreezesDuration: 1000 * sum(got, 'totalFreezesDuration'), ...limitation,
  };
  // Only browsers without transport-wide feedback estimate the incoming bandwidth. Do not use the pair's outgoing
  // estimate: it is about the other direction.
  const transport = transportStats(entries, condition, estimate ?? largest(selectedPair(entries), 'availableIncomingBitrate'));
  return { audio: of('audio'), video, transport, timestamp: timestampOf(entries) };
}

/** @param {Reports} reports @returns {import('./condition.js').ReceivedCounters | null} null if nothing was received */
export function receivedCounters(reports) {
  const entries = entriesOf(reports);
  const got = select(entries, 'inbound-rtp');
  const audio = select(entries, 'inbound-rtp', 'audio');
  if (sum(got, 'packetsReceived') === 0) return null;
  return {
    at: timestampOf(entries) / 1000,
    received: sum(got, 'packetsReceived'), lost: sum(got, 'packetsLost'), frozen: sum(got, 'totalFreezesDuration'),
    // Concealed silence is not audible, so it does not count.
    concealed: sum(audio, 'concealedSamples') - sum(audio, 'silentConcealedSamples'), samples: sum(audio, 'totalSamplesReceived'),
    // The packets of a video frame are sent in a burst, so their jitter is not meaningful.
    jitter: largest(audio, 'jitter'), roundTrip: largest(selectedPair(entries), 'currentRoundTripTime'),
  };
}

/**
 * @param {Reports} reports
 * @param {boolean} [isAudioOnly] whether no video is being sent at the moment. If so, statistics about video are
 *   ignored, because browsers keep the last values of a video that was sent before
 * @returns {import('./condition.js').SentCounters | null} null if nothing was sent
 */
export function sentCounters(reports, isAudioOnly = false) {
  const entries = entriesOf(reports);
  if (sum(select(entries, 'outbound-rtp'), 'packetsSent') === 0) return null;
  const seen = select(entries, 'remote-inbound-rtp', isAudioOnly ? 'audio' : undefined);
  const active = isAudioOnly ? [] : activeVideo(entries);
  /** @param {string} reason */
  const limitedBy = (reason) => Math.max(0, ...active.map(({ qualityLimitationDurations: durations }) => durations?.[reason] ?? 0));
  return {
    at: timestampOf(entries) / 1000,
    limitedByNetwork: limitedBy('bandwidth'), limitedByDevice: limitedBy('cpu'), sendsVideo: active.some(({ framesPerSecond }) => framesPerSecond > 0),
    lossRatio: largest(seen, 'fractionLost'), roundTrip: largest(selectedPair(entries), 'currentRoundTripTime') ?? largest(seen, 'roundTripTime'),
    available: largest(selectedPair(entries), 'availableOutgoingBitrate'),
  };
}
