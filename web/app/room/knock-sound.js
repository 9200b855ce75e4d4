// Plays two short tones when someone knocks. Browsers play no sound before the first user gesture, but the host who
// receives the knock has already pressed Join.
import { mayPlay, tone } from '../shared/tone.js';

/** The tones as [frequency in hertz, start, end]. Start and end are in seconds. */
const tones = /** @type {const} */ ([[520, 0, 0.09], [520, 0.16, 0.25]]);
const volume = 0.14;

export function knockSound() {
  if (!mayPlay()) return;
  const context = new AudioContext();
  const start = context.currentTime + 0.02;
  for (const [frequency, from, to] of tones) tone(context, frequency, start + from, start + to, volume);
  window.setTimeout(() => { context.close().catch(() => {}); }, 1000);
}
