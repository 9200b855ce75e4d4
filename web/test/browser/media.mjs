// Test video and audio, and checks of received media.
import { writeFile } from 'node:fs/promises';
import { middleColor, receivedMedia } from './in-page.mjs';
import { NotYet } from './wait.mjs';

/** The selector of the other person's video in OpenTok's markup, which ours follows. */
export const remoteVideo = '.OT_subscriber video';

/** The colors that pages paint. They differ enough to be distinguishable after every codec. */
export const colors = {
  red: [255, 0, 0],
  green: [0, 128, 0],
  blue: [0, 0, 255],
  yellow: [255, 255, 0],
  cyan: [0, 255, 255],
  magenta: [255, 0, 255],
  white: [255, 255, 255],
  black: [0, 0, 0],
};

/** Returns the name of the nearest color. */
export function colorName([red, green, blue]) {
  // Recognize green by its hue instead of its distance, because a dark green is close to black in RGB.
  const strongest = Math.max(red, green, blue);
  const weakest = Math.min(red, green, blue);
  if (strongest < 50) return 'black';
  if (strongest - weakest < strongest / 4) return strongest > 170 ? 'white' : 'gray';
  const high = (channel) => channel > (strongest + weakest) / 2;
  const key = [red, green, blue].map((channel) => (high(channel) ? 1 : 0)).join('');
  return { '100': 'red', '010': 'green', '001': 'blue', '110': 'yellow', '011': 'cyan', '101': 'magenta' }[key];
}

/**
 * Returns the name of the color in the middle of the other person's video, or the reason why there is none, such as "no
 * frame". `top` chooses another height, as in `middleColor`.
 */
export async function remoteColor(page, selector = remoteVideo, top = undefined) {
  const { rgb, missing } = await page.evaluate(middleColor, selector, top);
  return missing ?? colorName(rgb);
}

/** Waits until the page shows a partner with this color, or with one of several, and returns the color. */
export function seesColor(page, expected, { selector = remoteVideo, top, timeout } = {}) {
  const wanted = [expected].flat();
  return page.until(`the partner's picture is ${wanted.join(' or ')}`, async () => {
    const color = await remoteColor(page, selector, top);
    if (!wanted.includes(color)) throw new NotYet(`it is ${color}`);
    return color;
  }, { timeout });
}

/** Returns the frames decoded so far by the page's open peer connections. */
export async function framesDecoded(page) {
  return (await page.evaluate(receivedMedia)).framesDecoded;
}

/** Returns `{packets, level, energy}` of the audio that the page receives; `level` from 0 to 1. */
export async function audioReceived(page) {
  const { audioPackets, audioLevel, audioEnergy } = await page.evaluate(receivedMedia);
  return { packets: audioPackets, level: audioLevel, energy: audioEnergy };
}

/** Waits until `by` more frames are decoded. Never checks a rate, because CPUs may be busy. */
export async function framesRise(page, { by = 15, timeout } = {}) {
  // With a new partner, the statistics may start at zero again.
  let from = await framesDecoded(page);
  return page.until(`${by} more frames are decoded`, async () => {
    const now = await framesDecoded(page);
    from = Math.min(from, now);
    if (now - from < by) throw new NotYet(`${now - from} so far`);
    return now;
  }, { timeout });
}

/** Waits until audio packets keep arriving and are not silent. */
export async function soundArrives(page, { by = 25, timeout } = {}) {
  let from = (await audioReceived(page)).packets;
  return page.until(`${by} more packets of audible sound arrive`, async () => {
    const { packets, level } = await audioReceived(page);
    from = Math.min(from, packets);
    if (packets - from < by) throw new NotYet(`${packets - from} packets so far`);
    // A tone at half volume has a level of 0.3 to 0.5. An open microphone in a silent room stays far below this threshold.
    if (level < 0.01) throw new NotYet(`packets arrive, but their level is ${level}`);
    return { packets, level };
  }, { timeout });
}

/** Waits until the page receives video without sound: this many frames are decoded while no audio packet arrives. */
export function soundStops(page, { frames = 10 } = {}) {
  let [packets, from] = [-1, 0];
  return page.until(`${frames} frames are decoded without any sound`, async () => {
    const now = await page.evaluate(receivedMedia);
    if (now.audioPackets !== packets) [packets, from] = [now.audioPackets, now.framesDecoded];
    if (now.framesDecoded - from < frames) throw new NotYet(`${now.framesDecoded - from} so far, after ${packets} packets of sound`);
    return true;
  });
}

/**
 * Writes a video file for `launchChromium({picture})`: one color with a moving block near the top.
 *
 * @param {string} file a path that ends in .y4m
 * @param {keyof typeof colors} color
 */
export async function writePicture(file, color, { width = 320, height = 240, framesPerSecond = 15 } = {}) {
  const block = 20;
  const [background, foreground] = [colors[color], colors.white].map(toYCbCr);
  const luma = width * height;
  const chroma = luma / 4;
  const parts = [Buffer.from(`YUV4MPEG2 W${width} H${height} F${framesPerSecond}:1 Ip A1:1 C420\n`)];
  // The file has one second, which the browser repeats.
  for (let frame = 0; frame < framesPerSecond; frame += 1) {
    const planes = Buffer.alloc(luma + 2 * chroma);
    planes.fill(background[0], 0, luma).fill(background[1], luma, luma + chroma).fill(background[2], luma + chroma);
    const left = Math.floor((frame * (width - block)) / framesPerSecond);
    for (let row = 8; row < 8 + block; row += 1) planes.fill(foreground[0], row * width + left, row * width + left + block);
    parts.push(Buffer.from('FRAME\n'), planes);
  }
  await writeFile(file, Buffer.concat(parts));
  return file;
}

/** Converts a color to BT.601 with limited range, which browsers assume for a y4m file. */
function toYCbCr([red, green, blue]) {
  return [
    16 + (65.481 * red + 128.553 * green + 24.966 * blue) / 255,
    128 + (-37.797 * red - 74.203 * green + 112 * blue) / 255,
    128 + (112 * red - 93.786 * green - 18.214 * blue) / 255,
  ].map(Math.round);
}

/**
 * Writes a sound file for `launchChromium({sound})`: one second of a tone, which the browser repeats without a click when
 * `frequency` is a whole number.
 *
 * @param {string} file a path that ends in .wav
 */
export async function writeTone(file, frequency = 440) {
  const rate = 48_000;
  const header = Buffer.alloc(44);
  header.write('RIFF', 0);
  header.writeUInt32LE(36 + rate * 2, 4);
  header.write('WAVEfmt ', 8);
  header.writeUInt32LE(16, 16); // bytes in this chunk
  header.writeUInt16LE(1, 20); // plain samples
  header.writeUInt16LE(1, 22); // one channel
  header.writeUInt32LE(rate, 24);
  header.writeUInt32LE(rate * 2, 28); // bytes a second
  header.writeUInt16LE(2, 32); // bytes a sample
  header.writeUInt16LE(16, 34); // bits a sample
  header.write('data', 36);
  header.writeUInt32LE(rate * 2, 40);
  const samples = Buffer.alloc(rate * 2);
  for (let index = 0; index < rate; index += 1) {
    samples.writeInt16LE(Math.round(16_000 * Math.sin((2 * Math.PI * frequency * index) / rate)), index * 2);
  }
  await writeFile(file, Buffer.concat([header, samples]));
  return file;
}
