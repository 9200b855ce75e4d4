// A camera that flashes and a microphone that beeps at the same moments, and their times in a media file. A recording is in sync if
// each flash is where its beep is.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);

/**
 * Runs in the page, before its own scripts: replaces camera and microphone. Each second, the picture is white for 120 ms while
 * the microphone plays a tone. `window.__flashes` counts the flashes.
 *
 * Not for engines whose AudioContext does not start without a sound card.
 *
 * @param {{tone: number}} options the frequency in hertz, which distinguishes the beeps of several pages
 */
export function flashAndBeep({ tone }) {
  const devices = navigator.mediaDevices;
  if (!devices || devices.__flashing) return;
  devices.__flashing = true;
  window.__flashes = 0;
  const audio = new AudioContext();
  const beep = new GainNode(audio, { gain: 0 });
  const destination = new MediaStreamAudioDestinationNode(audio);
  const oscillator = new OscillatorNode(audio, { frequency: tone });
  oscillator.connect(beep).connect(destination);
  oscillator.start();
  for (const gesture of ['pointerdown', 'keydown']) {
    window.addEventListener(gesture, () => audio.resume(), { capture: true, once: true });
  }

  const canvas = Object.assign(document.createElement('canvas'), { width: 320, height: 240 });
  const context = canvas.getContext('2d', { alpha: false });
  let [isWhite, painted, planned, moves] = [false, 0, 0, 0];
  const paint = (white) => {
    if (white && !isWhite) window.__flashes += 1;
    [isWhite, painted] = [white, performance.now()];
    context.fillStyle = white ? 'white' : 'black';
    context.fillRect(0, 0, canvas.width, canvas.height);
    // Something must change, because a canvas that stays the same sends no frames.
    moves += 1;
    context.fillStyle = white ? `rgb(255, 255, ${moves % 2 ? 250 : 255})` : `rgb(0, 0, ${moves % 2 ? 5 : 0})`;
    context.fillRect(0, 0, 8, 8);
  };
  paint(false);
  // Chromium takes a block of sound as recorded when it is rendered, which is the output's latency before it is heard. It then says of
  // each Opus frame, of 20 ms, that it begins when it ends. The context falls behind for good when the machine is too busy to render a
  // block in time, so its clock is read again for each flash.
  const opusFrame = 0.02;
  // A canvas is captured with the next frame of the display, of 16.7 ms: half of that later on average.
  const capture = 0.008;
  /** Returns the context's time whose sound the receivers get at the same moment as what is painted now, in seconds. */
  const heardNow = () => {
    const { contextTime, performanceTime } = audio.getOutputTimestamp();
    const output = performanceTime / 1000 - contextTime;
    return performance.now() / 1000 - (output - audio.outputLatency + audio.baseLatency + opusFrame - capture);
  };
  // Short, so that a flash begins within a few milliseconds of its beep.
  setInterval(() => {
    const now = audio.currentTime;
    const next = Math.floor(now) + 1;
    if (next > planned && next - now < 0.5) {
      planned = next;
      beep.gain.setValueAtTime(0.5, next);
      beep.gain.setValueAtTime(0, next + 0.12);
    }
    const heard = heardNow();
    const white = planned > 1 && heard >= 2 && heard % 1 < 0.12;
    if (white !== isWhite || performance.now() - painted > 40) paint(white);
  }, 4);
  devices.getUserMedia = async ({ audio: hears = false, video: sees = false } = {}) => new MediaStream([
    ...sees ? canvas.captureStream().getVideoTracks() : [], ...hears ? destination.stream.getAudioTracks() : [],
  ]);
  devices.enumerateDevices = async () => [
    { kind: 'audioinput', deviceId: 'beeps', groupId: 'flash', label: 'Beeps' },
    { kind: 'videoinput', deviceId: 'flashes', groupId: 'flash', label: 'Flashes' },
  ];
}

/**
 * Returns the times in seconds at which the picture becomes white.
 *
 * @param {string} file @param {string} [filter] ffmpeg's filter that chooses a part of the picture, such as `crop=…`
 */
export async function flashTimes(file, filter) {
  const chain = [...filter ? [filter] : [], 'signalstats', 'metadata=print:key=lavfi.signalstats.YAVG:file=-'].join(',');
  const { stdout } = await ffmpeg('-i', file, '-an', '-vf', chain, '-fps_mode', 'passthrough', '-f', 'null', '-');
  const times = [];
  let [time, wasWhite] = [0, true];
  for (const line of stdout.split('\n')) {
    const at = /pts_time:([\d.]+)/.exec(line);
    const level = /YAVG=([\d.]+)/.exec(line);
    if (at) time = Number(at[1]);
    if (!level) continue;
    const isWhite = Number(level[1]) > 120;
    if (isWhite && !wasWhite) times.push(time);
    wasWhite = isWhite;
  }
  return times;
}

/**
 * Returns the times in seconds at which a tone begins.
 *
 * @param {string} file @param {number} tone its frequency in hertz; tones of other frequencies do not count
 */
export async function beepTimes(file, tone) {
  const chain = `bandpass=f=${tone}:width_type=h:w=200,bandpass=f=${tone}:width_type=h:w=200,silencedetect=noise=-32dB:d=0.3`;
  const { stderr } = await ffmpeg('-v', 'info', '-i', file, '-vn', '-af', chain, '-f', 'null', '-');
  return [...stderr.matchAll(/silence_end: ([\d.]+)/g)].map(([, at]) => Number(at));
}

/** @param {string[]} args */
function ffmpeg(...args) {
  return run('ffmpeg', ['-hide_banner', '-nostdin', '-nostats', ...args], { maxBuffer: 64 << 20 });
}

/**
 * Returns, for each beep between the first flash and the last, how much later the nearest flash is, in milliseconds.
 *
 * @param {number[]} flashes @param {number[]} beeps
 */
export function lags(flashes, beeps) {
  const [first, last] = [flashes[0] - 0.3, flashes[flashes.length - 1] + 0.3];
  return beeps.filter((beep) => beep > first && beep < last).map((beep) => {
    const nearest = flashes.reduce((best, at) => (Math.abs(at - beep) < Math.abs(best - beep) ? at : best), Infinity);
    return Math.round((nearest - beep) * 1000);
  });
}

/** @param {number[]} values */
export function median(values) {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];
}
