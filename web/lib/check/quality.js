// Measures loss, jitter, bitrate and delay: publishes a test stream in a room of its own, and subscribes to it, so that the media
// takes the way of a call, to the server and back. The room has one place and is locked, so nobody else sees it. Its limits are those of
// any room.

import { ConfabError } from '../errors.js';
import { relaysOf, withProtocol } from '../media/ice.js';
import { maxVideoBitrate } from '../media/layers.js';
import { limited } from './limited.js';
import { sampleOf, summarize } from './measures.js';
import { isMediaOff } from './transports.js';

/** @typedef {import('./verdicts.js').Measurements} Measurements */
/** @typedef {Pick<import('../signaling/client.js').Client, 'request' | 'on' | 'off' | 'ice'>} Line */
/** @typedef {'udp' | 'tcp' | 'turn'} Path */
/**
 * @typedef {object} QualityTools
 * @property {Line} client
 * @property {Pick<import('../media/peer.js').Rtc, 'RTCPeerConnection'>} rtc
 * @property {import('../clock.js').Clock} clock
 * @property {{audio: MediaStreamTrack, video: MediaStreamTrack}} tracks what to send
 * @property {() => boolean} isHidden whether the page is in the background, where browsers slow it down
 * @property {(secondsLeft: number) => void} progress called each second
 */

/** How long the quality is measured, in seconds. */
export const measuredSeconds = 10;
/** How long it may take until the stream has come back, in milliseconds. */
const beginMs = 10_000;
/** How long a request may take, in milliseconds. */
const requestMs = 5000;

/** Codes of errors by which the server says that a limit is reached. */
const limitCodes = ['rate_limited', 'bandwidth_exceeded', 'room_full', 'session_full', 'too_many_connections'];

/**
 * @param {QualityTools} tools
 * @param {Path} path how the media travels: the only way that is used
 * @returns {Promise<Pick<Measurements, 'quality' | 'up' | 'down' | 'roundTripMs'>>}
 */
export async function measureQuality(tools, path) {
  const nothing = { up: null, down: null, roundTripMs: null };
  const measurement = new Measurement(tools, path);
  try {
    const samples = await measurement.run();
    if (measurement.wasHidden) return { quality: 'hidden', ...nothing };
    return { quality: 'measured', ...summarize(samples, maxVideoBitrate) };
  } catch (error) {
    return { quality: reasonOf(error), ...nothing };
  } finally {
    measurement.close();
  }
}

/** @param {import('./measures.js').Sample} sample @returns {number} how many packets have come back */
const packetsOf = ({ received: { audio, video } }) => audio.packetsReceived + video.packetsReceived;

/** @param {unknown} error @returns {import('./verdicts.js').Quality} why the quality was not measured */
export function reasonOf(error) {
  if (isMediaOff(error)) return 'mediaOff';
  const code = error instanceof ConfabError ? String(error.code) : '';
  if (code === 'room_not_found') return 'roomsClosed';
  return limitCodes.includes(code) ? 'busy' : 'failed';
}

class Measurement {
  #tools;
  #path;
  /** @type {RTCPeerConnection[]} */
  #connections = [];
  /** Whether the server has paused the video because the network to this device is too slow for it. */
  #isPaused = false;
  /** Whether the page was in the background during the measurement. */
  wasHidden = false;

  /** @param {QualityTools} tools @param {Path} path */
  constructor(tools, path) {
    this.#tools = tools;
    this.#path = path;
    tools.client.on('message:session.subscriptionChanged', this.#subscriptionChanged);
  }

  async run() {
    const { sessionId, token } = await this.#request('room.join', {
      displayName: '', options: { media: 'routed', capacity: 1, locked: true, chat: false },
    });
    await this.#request('session.join', { sessionId, token });
    const { audio, video } = this.#tools.tracks;
    const sending = await this.#connect('send', (connection) => [
      connection.addTransceiver(audio, { direction: 'sendonly' }),
      connection.addTransceiver(video, { direction: 'sendonly', sendEncodings: [{ maxBitrate: maxVideoBitrate }] }),
    ]);
    const { width, height } = video.getSettings();
    const { stream } = await this.#request('session.publish', {
      sessionId, hasAudio: true, hasVideo: true, videoType: 'custom', width, height, ...sending.mids,
    });
    const receiving = await this.#connect('receive', (connection) => ['audio', 'video'].map((kind) => (
      connection.addTransceiver(kind, { direction: 'recvonly' }))));
    await this.#request('session.subscribe', { sessionId, streamId: stream.streamId, audio: true, video: true, ...receiving.mids });
    return this.#measure(sending.connection, receiving.connection);
  }

  close() {
    const { client } = this.#tools;
    client.off('message:session.subscriptionChanged', this.#subscriptionChanged);
    for (const connection of this.#connections) connection.close();
    // Answers do not matter: the server ends both with the client too.
    for (const side of ['send', 'receive']) client.request('media.close', { side }).catch(() => {});
    client.request('room.leave').catch(() => {});
  }

  #subscriptionChanged = (/** @type {import('../signaling/messages.js').Message} */ { videoPaused, reason }) => {
    this.#isPaused = videoPaused && reason === 'slow';
  };

  /** @param {string} type @param {Record<string, unknown>} members */
  #request(type, members) {
    const { client, clock } = this.#tools;
    return limited(client.request(type, members), requestMs, clock);
  }

  /**
   * @param {'send' | 'receive'} side
   * @param {(connection: RTCPeerConnection) => RTCRtpTransceiver[]} add adds a transceiver for audio, and one for video
   */
  async #connect(side, add) {
    const { client, rtc } = this.#tools;
    const isRelayed = this.#path === 'turn';
    const iceServers = isRelayed ? relaysOf(await client.ice.current()) : [];
    const iceTransportPolicy = isRelayed ? 'relay' : 'all';
    const connection = new rtc.RTCPeerConnection({ iceServers, iceTransportPolicy, bundlePolicy: 'max-bundle' });
    this.#connections.push(connection);
    const [audio, video] = add(connection);
    await connection.setLocalDescription();
    const { sdp } = await this.#request('media.offer', { side, sdp: connection.localDescription?.sdp ?? '' });
    await connection.setRemoteDescription({ type: 'answer', sdp: withProtocol(sdp, this.#path === 'turn' ? undefined : this.#path) });
    return { connection, mids: { audioMid: audio.mid, videoMid: video.mid } };
  }

  /** @param {RTCPeerConnection} sending @param {RTCPeerConnection} receiving */
  async #measure(sending, receiving) {
    const sample = async () => {
      const [sent, received, downlink] = await Promise.all([sending.getStats(), receiving.getStats(), this.#downlink()]);
      return sampleOf(sent, received, { downlink, isPaused: this.#isPaused });
    };
    const { clock, progress, isHidden } = this.#tools;
    const until = clock.now() + beginMs;
    let first = await sample();
    while (packetsOf(first) === 0) {
      if (clock.now() >= until) {
        throw new ConfabError({ code: 'timeout', message: 'The test stream did not come back from the server. Try again.' });
      }
      await this.#pause(250);
      first = await sample();
    }
    const samples = [first];
    for (let left = measuredSeconds; left > 0; left -= 1) {
      progress(left);
      await this.#pause(1000);
      this.wasHidden ||= isHidden();
      samples.push(await sample());
    }
    return samples;
  }

  /** @returns {Promise<number | undefined>} what the server says the connection to this device carries, in bit/s */
  async #downlink() {
    const { bitrate } = await this.#request('media.estimate', {});
    return bitrate;
  }

  /** @param {number} ms @returns {Promise<void>} */
  #pause(ms) {
    return new Promise((resolve) => { this.#tools.clock.setTimeout(() => resolve(), ms); });
  }
}
