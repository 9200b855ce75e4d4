// The default interface of a publisher or subscriber: its name, a mute button, an audio meter and notices. Names come from other
// people, so they are only ever set as text.

import { addStyle } from './style.js';

/** @typedef {'auto' | 'on' | 'off'} Mode */
/**
 * @typedef {object} Style
 * @property {Mode} [nameDisplayMode]
 * @property {Mode} [buttonDisplayMode]
 * @property {Mode} [audioLevelDisplayMode]
 * @property {Mode} [videoDisabledDisplayMode]
 * @property {Mode} [audioBlockedDisplayMode]
 * @property {Mode} [archiveStatusDisplayMode]
 * @property {string | null} [backgroundImageURI] the address of an image that is shown without video
 */

/** @type {Required<Style>} */
const usual = {
  nameDisplayMode: 'auto', buttonDisplayMode: 'auto', audioLevelDisplayMode: 'auto', videoDisabledDisplayMode: 'auto',
  audioBlockedDisplayMode: 'auto', archiveStatusDisplayMode: 'auto', backgroundImageURI: null,
};

const modes = ['auto', 'on', 'off'];

/**
 * Returns the members of a style that are known and have a valid value.
 * @param {Record<string, any>} given
 * @returns {Style}
 */
export function validStyle(given) {
  return Object.fromEntries(Object.entries(given).filter(([name, value]) => {
    if (name === 'backgroundImageURI') return value === null || typeof value === 'string';
    return Object.hasOwn(usual, name) && modes.includes(value);
  }));
}

const off = Object.fromEntries(Object.keys(usual).filter((name) => name !== 'backgroundImageURI').map((name) => [name, 'off']));

/**
 * Returns the style of a new publisher or subscriber.
 * @param {{style?: Record<string, any>, showControls?: boolean}} options
 * @returns {Required<Style>}
 */
export function styleOf({ style = {}, showControls = true }) {
  return { ...usual, ...validStyle(style), ...showControls ? {} : off };
}

const icons = {
  microphone: ['M12 3a3 3 0 0 1 3 3v6a3 3 0 0 1-6 0V6a3 3 0 0 1 3-3z', 'M5 11a7 7 0 0 0 14 0', 'M12 18v3'],
  speaker: ['M4 9v6h4l5 4V5L8 9z', 'M16 9a4 4 0 0 1 0 6'],
};

/**
 * @typedef {object} InterfaceOptions
 * @property {'publisher' | 'subscriber'} kind
 * @property {string} name
 * @property {'cover' | 'contain'} fitMode
 * @property {Required<Style>} style
 * @property {(muted: boolean) => void} mute called when the user presses the mute button
 * @property {() => void} [unblock] called when the user presses the button that plays blocked sound
 */

export class Interface {
  #root;
  #options;
  #style;
  #parts;
  #isMuted = false;

  /** @param {HTMLElement} root @param {InterfaceOptions} options */
  constructor(root, options) {
    addStyle();
    this.#root = root;
    this.#options = options;
    this.#style = options.style;
    const value = make('div', 'OT_audio-level-meter__value');
    const mute = make('button', 'OT_mute OT_edge-bar-item');
    mute.setAttribute('type', 'button');
    mute.append(drawing(options.kind === 'publisher' ? icons.microphone : icons.speaker));
    mute.addEventListener('click', () => options.mute(!this.#isMuted));
    const blocked = make('button', 'OT_audio-blocked', 'Play sound');
    blocked.setAttribute('type', 'button');
    blocked.addEventListener('click', () => options.unblock?.());
    const notice = make('div', 'OT_video-disabled-indicator');
    notice.setAttribute('role', 'status');
    const level = make('div', 'OT_audio-level-meter');
    level.setAttribute('aria-hidden', 'true');
    level.append(value);
    this.#parts = {
      poster: make('div', 'OT_video-poster'), name: make('p', 'OT_name OT_edge-bar-item', options.name), level, value, mute, blocked, notice,
      archiving: make('div', 'OT_archiving OT_archiving-off'),
    };
    this.#parts.name.hidden = options.name === '';
    blocked.hidden = true;
    notice.hidden = true;
    root.classList.add(`OT_fit-mode-${options.fitMode}`);
    const { poster, name, archiving } = this.#parts;
    root.firstElementChild?.append(poster);
    root.append(name, level, notice, blocked, archiving, mute);
    this.muted = false;
    this.#apply();
  }

  /** @returns {Required<Style>} */
  get style() {
    return { ...this.#style };
  }

  /** @param {Style} changes */
  change(changes) {
    this.#style = { ...this.#style, ...changes };
    this.#apply();
  }

  /** Whether the meter is shown, so that the level must be measured. */
  get isMetering() {
    const { audioLevelDisplayMode: mode } = this.#style;
    return mode === 'on' || (mode === 'auto' && this.#root.classList.contains('OT_audio-only'));
  }

  /** @param {boolean} isMuted whether the publisher sends no sound, or the subscriber plays none */
  set muted(isMuted) {
    this.#isMuted = isMuted;
    const what = this.#options.kind === 'publisher' ? 'microphone' : 'sound';
    this.#parts.mute.setAttribute('aria-label', `${isMuted ? 'Unmute' : 'Mute'} ${what}`);
    this.#parts.mute.classList.toggle('OT_active', isMuted);
  }

  /** @param {number} level 0 to 1 */
  set level(level) {
    // Loudness is logarithmic: 30 dB below the maximum is the smallest level shown.
    const share = level > 0 ? Math.min(1, Math.max(0, 1 + Math.log10(level) / 1.5)) : 0;
    this.#parts.value.style.transform = `scale(${share.toFixed(2)})`;
  }

  /** @param {boolean} isBlocked */
  set blocked(isBlocked) {
    this.#parts.blocked.hidden = !isBlocked;
  }

  /**
   * Shows a notice about the video; an empty text hides it.
   * @param {string} text
   */
  set notice(text) {
    this.#parts.notice.textContent = text;
    this.#parts.notice.hidden = text === '';
  }

  #apply() {
    const { poster, name, level, mute, blocked, notice, archiving } = this.#parts;
    const style = this.#style;
    /** @type {[HTMLElement, Mode][]} */
    const shown = [
      [name, style.nameDisplayMode], [mute, style.buttonDisplayMode], [level, style.audioLevelDisplayMode],
      [notice, style.videoDisabledDisplayMode], [blocked, style.audioBlockedDisplayMode], [archiving, style.archiveStatusDisplayMode],
    ];
    for (const [part, mode] of shown) for (const one of modes) part.classList.toggle(`OT_mode-${one}`, one === mode);
    const image = style.backgroundImageURI;
    poster.style.backgroundImage = image === null ? '' : `url(${JSON.stringify(image)})`;
  }
}

/** @param {string} tag @param {string} className @param {string} [text] */
function make(tag, className, text = '') {
  const element = document.createElement(tag);
  element.className = className;
  element.textContent = text;
  return element;
}

/** @param {string[]} paths @returns {Element} an icon, with a slash for its muted state */
function drawing(paths) {
  const namespace = 'http://www.w3.org/2000/svg';
  const svg = document.createElementNS(namespace, 'svg');
  svg.setAttribute('viewBox', '0 0 24 24');
  svg.setAttribute('aria-hidden', 'true');
  for (const [index, d] of [...paths, 'M4 4l16 16'].entries()) {
    const path = document.createElementNS(namespace, 'path');
    path.setAttribute('d', d);
    if (index === paths.length) path.setAttribute('class', 'OT_slash');
    svg.append(path);
  }
  return svg;
}
