// Sounds of the pages, made with Web Audio, so that nothing is loaded.

/** Returns whether the page may play sounds. Browsers play none before the first user gesture. */
export function mayPlay() {
  const { userActivation } = /** @type {{userActivation?: {hasBeenActive: boolean}}} */ (navigator);
  return userActivation?.hasBeenActive ?? true;
}

/**
 * Plays one tone between two times on the context's clock (`currentTime`, in seconds).
 * @param {AudioContext} context
 * @param {number} frequency
 * @param {number} from
 * @param {number} to
 * @param {number} volume
 */
export function tone(context, frequency, from, to, volume) {
  const oscillator = new OscillatorNode(context, { frequency });
  const gain = new GainNode(context, { gain: 0 });
  // Fade in and out to avoid clicks.
  gain.gain.setValueAtTime(0, from);
  gain.gain.linearRampToValueAtTime(volume, from + 0.02);
  gain.gain.setValueAtTime(volume, to - 0.03);
  gain.gain.linearRampToValueAtTime(0, to);
  oscillator.connect(gain).connect(context.destination);
  oscillator.start(from);
  oscillator.stop(to);
}
