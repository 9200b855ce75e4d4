// The default interface of a publisher or subscriber: its name, a mute button, an audio meter, notices, and initials or an image while
// there is no video. Names and initials come from other people, so they are only ever set as text or as a label.

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
  slash: ['M4 4l16 16'],
  person: ['M12 4a4 4 0 1 1 0 8a4 4 0 0 1 0-8z', 'M4 21a8 7 0 0 1 16 0z'],
};

/**
 * @typedef {object} InterfaceOptions
 * @property {'publisher' | 'subscriber'} kind
 * @property {string} name
 * @property {string} initials shown without video; empty for a silhouette
 * @property {'cover' | 'contain'} fitMode
 * @property {Required<Style>} style
 * @property {(muted: boolean) => void} mute called when the user presses the mute button
 * @property {() => void} [unblock] called when the user presses "Play sound"
 */
/**
 * @typedef {object} Changes
 * @property {boolean} [hasAudio] whether there is sound that the mute button can turn off
 * @property {boolean} [muted] whether the publisher sends no sound, or the subscriber plays none
 * @property {number} [level] the audio level, 0 to 1
 * @property {boolean} [blocked] whether the browser requires a click before it plays sound
 * @property {string} [notice] a notice about the video; empty for none
 * @property {boolean} [recorded] whether the session is being recorded
 */

export class Interface {
  #root;
  #muteLabel;
  #style;
  #parts;
  #isMuted = false;

  /** @param {HTMLElement} root @param {InterfaceOptions} options */
  constructor(root, { kind, name, initials, fitMode, style, mute, unblock }) {
    addStyle();
    this.#root = root;
    // A page has a button for each subscriber, and screen readers list them without their surroundings.
    this.#muteLabel = kind === 'publisher' ? 'microphone' : `sound${name === '' ? '' : ` from ${name}`}`;
    this.#style = style;
    const value = make('div', 'OT_audio-level-meter__value');
    this.#parts = {
      poster: make('div', 'OT_video-poster'),
      name: make('p', 'OT_name OT_edge-bar-item', name),
      level: make('div', 'OT_audio-level-meter'),
      value,
      mute: makeButton('OT_mute OT_edge-bar-item', () => mute(!this.#isMuted)),
      blocked: makeButton('OT_audio-blocked', () => unblock?.(), 'Play sound'),
      notice: make('div', 'OT_video-disabled-indicator'),
      archiving: make('div', 'OT_archiving OT_archiving-off'),
    };
    const { poster, level, notice, archiving, ...parts } = this.#parts;
    // Screen readers get the name and the notices as text.
    for (const part of [poster, level]) part.setAttribute('aria-hidden', 'true');
    poster.append(initials === '' ? drawing('person') : make('span', 'OT_initials', initials));
    level.append(value);
    notice.setAttribute('role', 'status');
    parts.name.hidden = name === '';
    parts.mute.append(drawing(kind === 'publisher' ? 'microphone' : 'speaker', 'slash'));
    root.classList.add(`OT_fit-mode-${fitMode}`);
    root.firstElementChild?.append(poster);
    root.append(parts.name, level, notice, parts.blocked, archiving, parts.mute);
    this.show({ muted: false, blocked: false, notice: '' });
    this.setStyle(style);
  }

  /** Whether the meter is shown, so that the level must be measured. */
  get isMetering() {
    const { audioLevelDisplayMode: mode } = this.#style;
    return mode === 'on' || (mode === 'auto' && this.#root.classList.contains('OT_audio-only'));
  }

  /** @param {Changes} changes */
  show({ hasAudio, muted, level, blocked, notice, recorded }) {
    const { mute, value, blocked: play, notice: text, archiving } = this.#parts;
    if (recorded !== undefined) {
      archiving.classList.toggle('OT_archiving-on', recorded);
      archiving.classList.toggle('OT_archiving-off', !recorded);
      archiving.textContent = recorded ? 'Recording' : '';
    }
    if (hasAudio !== undefined) mute.hidden = !hasAudio;
    if (blocked !== undefined) play.hidden = !blocked;
    if (muted !== undefined) {
      this.#isMuted = muted;
      const label = `${muted ? 'Unmute' : 'Mute'} ${this.#muteLabel}`;
      mute.setAttribute('aria-label', label);
      mute.setAttribute('title', label);
      mute.classList.toggle('OT_active', muted);
    }
    if (level !== undefined) {
      // Loudness is logarithmic: 30 dB below the maximum is the smallest level shown.
      const share = level > 0 ? Math.min(1, Math.max(0, 1 + Math.log10(level) / 1.5)) : 0;
      value.style.transform = `scale(${share.toFixed(2)})`;
    }
    // The element stays in the page while it is empty, because screen readers announce only changes of elements that they know.
    if (notice !== undefined) text.textContent = notice;
  }

  /** @param {Required<Style>} style */
  setStyle(style) {
    this.#style = style;
    const { poster, name, level, mute, blocked, notice, archiving } = this.#parts;
    /** @type {[HTMLElement, Mode][]} */
    const shown = [
      [name, style.nameDisplayMode], [mute, style.buttonDisplayMode], [level, style.audioLevelDisplayMode],
      [notice, style.videoDisabledDisplayMode], [blocked, style.audioBlockedDisplayMode], [archiving, style.archiveStatusDisplayMode],
    ];
    for (const [part, mode] of shown) for (const one of modes) part.classList.toggle(`OT_mode-${one}`, one === mode);
    const image = style.backgroundImageURI;
    poster.style.backgroundImage = image === null ? '' : `url(${JSON.stringify(image)})`;
    poster.classList.toggle('OT_has-image', image !== null);
  }
}

/** @param {string} tag @param {string} className @param {string} [text] */
function make(tag, className, text = '') {
  const element = document.createElement(tag);
  element.className = className;
  element.textContent = text;
  return element;
}

/** @param {string} className @param {() => void} pressed @param {string} [text] */
function makeButton(className, pressed, text) {
  const button = make('button', className, text);
  button.setAttribute('type', 'button');
  button.addEventListener('click', pressed);
  return button;
}

/** @param {(keyof typeof icons)[]} names @returns {Element} the icons on top of each other, with a class for each */
function drawing(...names) {
  const namespace = 'http://www.w3.org/2000/svg';
  const svg = document.createElementNS(namespace, 'svg');
  svg.setAttribute('viewBox', '0 0 24 24');
  svg.setAttribute('aria-hidden', 'true');
  for (const name of names) {
    for (const d of icons[name]) {
      const path = document.createElementNS(namespace, 'path');
      path.setAttribute('d', d);
      path.setAttribute('class', `OT_${name}`);
      svg.append(path);
    }
  }
  return svg;
}
