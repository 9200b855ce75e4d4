// The style of one publisher or subscriber, and its default interface, which it has unless the program shows the video itself.

import { Interface, styleOf, validStyle } from './interface.js';

/** @typedef {import('./interface.js').Style} Style */
/**
 * @typedef {object} LookOptions
 * @property {Style} [style]
 * @property {boolean} [showControls]
 */

export class Look {
  #interface;
  #style;
  #isMetering = false;
  #meterChanged;

  /**
   * @param {HTMLElement | undefined} root undefined if the program shows the video itself
   * @param {LookOptions} options
   * @param {Omit<import('./interface.js').InterfaceOptions, 'style'>} parts
   * @param {() => void} meterChanged called when `isMetering` has changed
   */
  constructor(root, options, parts, meterChanged) {
    this.#style = styleOf(options);
    this.#interface = root ? new Interface(root, { ...parts, style: this.#style }) : null;
    this.#meterChanged = meterChanged;
  }

  /** Whether the audio level is shown, so that it must be measured. */
  get isMetering() {
    return this.#isMetering;
  }

  /** @param {string} [name] the name of one member @returns {any} the member; the whole style if `name` is undefined */
  style(name) {
    return name === undefined ? { ...this.#style } : this.#style[/** @type {keyof Style} */ (name)];
  }

  /** @param {string | Style} name a name, or an object of several members @param {unknown} [value] */
  setStyle(name, value) {
    this.#style = { ...this.#style, ...validStyle(typeof name === 'string' ? { [name]: value } : name) };
    this.#interface?.setStyle(this.#style);
    this.check();
  }

  /** @param {import('./interface.js').Changes} changes */
  show(changes) {
    this.#interface?.show(changes);
  }

  /** Checks again whether the audio level is shown. Call this when the video may have been turned on or off. */
  check() {
    const isMetering = this.#interface?.isMetering ?? false;
    if (isMetering === this.#isMetering) return;
    this.#isMetering = isMetering;
    this.#meterChanged();
  }
}
