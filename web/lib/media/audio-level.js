// Measures how loud a track is, ten times a second, for the event `audioLevelUpdated`.

import { systemClock, Timers } from '../clock.js';

const everyMs = 100;
const samples = 512;

/** @param {ArrayLike<number>} wave samples between -1 and 1 @returns {number} their root mean square, 0 to 1 */
export function levelOf(wave) {
  let sum = 0;
  for (let index = 0; index < wave.length; index += 1) sum += wave[index] ** 2;
  return wave.length === 0 ? 0 : Math.min(1, Math.sqrt(sum / wave.length));
}

/**
 * Calls `tell` with the result of `measure` every `everyMs` milliseconds, until stopped.
 * @param {() => number} measure
 * @param {(level: number) => void} tell
 * @param {import('../clock.js').Clock} [clock]
 * @returns {() => void} a function that stops measuring
 */
export function meter(measure, tell, clock = systemClock) {
  const timers = new Timers(clock);
  const tick = () => {
    tell(measure());
    timers.set('tick', everyMs, tick);
  };
  timers.set('tick', everyMs, tick);
  return () => timers.clearAll();
}

/**
 * Measures the level of a local track. A subscriber's level comes from its `RTCRtpReceiver` instead, which costs nothing.
 * @param {MediaStreamTrack} track
 * @returns {{measure: () => number, isListening: () => boolean, stop: () => void}} `isListening`: false if the browser measures nothing,
 *   because the user has not clicked the page yet, or, in Firefox, because the device has no audio output
 */
export function listenTo(track) {
  const context = new AudioContext();
  const analyser = context.createAnalyser();
  analyser.fftSize = samples;
  context.createMediaStreamSource(new MediaStream([track])).connect(analyser);
  const wave = new Float32Array(samples);
  return {
    measure: () => {
      // An AudioContext may be suspended until the user clicks the page. Calling `resume` repeatedly costs nothing.
      if (context.state === 'suspended') context.resume().catch(() => {});
      analyser.getFloatTimeDomainData(wave);
      return levelOf(wave);
    },
    isListening: () => context.state === 'running',
    stop: () => { context.close().catch(() => {}); },
  };
}

/**
 * Measures the level of a publisher's audio track. The publisher passes null to `listen` while it has no track, or no
 * handler for the level.
 */
export class SentLevel {
  #tell;
  #stop = () => {};

  /** @param {(level: number) => void} tell */
  constructor(tell) {
    this.#tell = tell;
  }

  /** @param {MediaStreamTrack | null} track */
  listen(track) {
    this.#stop();
    this.#stop = () => {};
    if (!track) return;
    const { measure, stop } = listenTo(track);
    const stopMeter = meter(measure, this.#tell);
    this.#stop = () => { stopMeter(); stop(); };
  }
}

/** @param {RTCRtpReceiver[]} receivers @returns {number} the level of their loudest audio source, 0 to 1 */
export function receivedLevel(receivers) {
  const sources = receivers.flatMap((receiver) => (receiver.track.kind === 'audio' ? receiver.getSynchronizationSources() : []));
  return Math.max(0, ...sources.map(({ audioLevel }) => audioLevel ?? 0));
}
