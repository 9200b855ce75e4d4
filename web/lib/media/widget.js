// The elements that show a publisher or a subscriber, with the class names that OpenTok users style and test against:
//
//   <div class="OT_root OT_publisher OT_loading">
//     <div class="OT_widget-container"><video class="OT_video-element" aria-label="You"></video></div>
//   </div>

/** @typedef {'replace' | 'after' | 'before' | 'append'} InsertMode */
/**
 * @typedef {object} WidgetOptions
 * @property {InsertMode} [insertMode] `replace` (the default) makes the target itself the widget
 * @property {boolean} [insertDefaultUI] false: creates only a video element, for the program to insert
 * @property {number | string} [width] a number of pixels, or a CSS length such as '50%'
 * @property {number | string} [height] like `width`
 * @property {'cover' | 'contain'} [fitMode] `cover` (the default) crops the video, `contain` shows all of it
 * @property {boolean} [mirror]
 * @property {string} [label] the accessible name of the video, such as 'You' or 'Partner'
 */
/**
 * @typedef {Element | string | null | undefined} Target an element or its id; default: a new element at the end of
 *   the page
 */
/**
 * @typedef {object} WidgetHooks
 * @property {() => void} loaded called when the first audio or video of the shown media has arrived
 * @property {(dimensions: {width: number, height: number}) => void} resized called when the video's size has changed
 * @property {() => void} [blocked] called when the browser requires a click before it plays sound
 */

/** OpenTok's default size, in pixels. */
const defaultSize = { width: 264, height: 198 };
let made = 0;

export class Widget {
  /** @type {HTMLElement | undefined} */
  element;
  #hooks;

  /**
   * @param {'publisher' | 'subscriber'} kind
   * @param {Target} target
   * @param {WidgetOptions} options
   * @param {WidgetHooks} hooks
   */
  constructor(kind, target, options, hooks) {
    this.#hooks = hooks;
    this.video = this.#makeVideo(options);
    this.id = `OT_${kind}_${made += 1}`;
    if (options.insertDefaultUI === false) return;
    const root = place(find(target), options.insertMode ?? 'replace');
    root.id ||= this.id;
    this.id = root.id;
    root.classList.add('OT_root', `OT_${kind}`, 'OT_loading');
    const { width = defaultSize.width, height = defaultSize.height } = options;
    Object.assign(root.style, { overflow: 'hidden', width: length(width), height: length(height) });
    // Do not override the position that the page's own style sets.
    if (globalThis.getComputedStyle?.(root).position === 'static') root.style.position = 'relative';
    const container = document.createElement('div');
    container.className = 'OT_widget-container';
    Object.assign(container.style, { width: '100%', height: '100%' });
    container.append(this.video);
    root.replaceChildren(container);
    this.element = root;
  }

  /** @param {MediaStream} media */
  show(media) {
    if (this.video.srcObject === media) return;
    this.video.srcObject = media;
    this.play();
  }

  play() {
    this.video.play().catch((error) => {
      if (error?.name === 'NotAllowedError') this.#hooks.blocked?.();
    });
  }

  /** @param {boolean} mirrored */
  set mirrored(mirrored) {
    this.video.style.transform = mirrored ? 'scaleX(-1)' : '';
    this.element?.classList.toggle('OT_mirrored', mirrored);
  }

  /**
   * Adds the class that marks the widget as audio-only, or removes it.
   * @param {boolean} audioOnly
   */
  set audioOnly(audioOnly) {
    this.element?.classList.toggle('OT_audio-only', audioOnly);
  }

  /** Returns the current frame as a base64 PNG, without the `data:` prefix; null if there is none. */
  snapshot() {
    const { videoWidth: width, videoHeight: height } = this.video;
    if (width === 0) return null;
    const canvas = Object.assign(document.createElement('canvas'), { width, height });
    canvas.getContext('2d')?.drawImage(this.video, 0, 0, width, height);
    return canvas.toDataURL('image/png').replace(/^data:[^,]*,/, '');
  }

  /**
   * Returns the current frame as JPEG; null if there is none, or the browser cannot encode it.
   * @param {number} width in pixels, to which the frame is scaled down @param {number} quality from 0 to 1
   * @returns {Promise<Blob | null>}
   */
  jpeg(width, quality) {
    const { videoWidth, videoHeight } = this.video;
    if (videoWidth === 0) return Promise.resolve(null);
    const scale = Math.min(1, width / videoWidth);
    const canvas = Object.assign(document.createElement('canvas'), {
      width: Math.max(1, Math.round(videoWidth * scale)), height: Math.max(1, Math.round(videoHeight * scale)),
    });
    canvas.getContext('2d')?.drawImage(this.video, 0, 0, canvas.width, canvas.height);
    return new Promise((resolve) => canvas.toBlob(resolve, 'image/jpeg', quality));
  }

  destroy() {
    this.video.srcObject = null;
    this.video.remove();
    this.element?.remove();
  }

  /** @param {WidgetOptions} options */
  #makeVideo({ label, fitMode }) {
    const video = document.createElement('video');
    video.className = 'OT_video-element';
    video.autoplay = true;
    // Without this, iPhones open every video full screen.
    video.playsInline = true;
    video.setAttribute('playsinline', '');
    if (label) video.setAttribute('aria-label', label);
    Object.assign(video.style, { width: '100%', height: '100%', display: 'block', objectFit: fitMode ?? 'cover' });
    video.addEventListener('loadeddata', () => {
      this.element?.classList.remove('OT_loading');
      this.#hooks.loaded();
    });
    video.addEventListener('resize', () => this.#hooks.resized({ width: video.videoWidth, height: video.videoHeight }));
    return video;
  }
}

/** @param {Target} target @returns {Element | null} */
function find(target) {
  if (typeof target !== 'string') return target ?? null;
  const found = document.getElementById(target);
  if (found) return found;
  throw new TypeError(`No element has the id "${target}". Pass an element of this page or its id.`);
}

/**
 * @param {Element | null} target
 * @param {InsertMode} mode
 * @returns {HTMLElement} the widget's root: the target itself, or a new element next to it, in it, or at the end of the
 *   page
 */
function place(target, mode) {
  if (target && mode === 'replace') return /** @type {HTMLElement} */ (target);
  const root = document.createElement('div');
  if (!target) document.body.append(root);
  else if (mode === 'append') target.append(root);
  else if (mode === 'before') target.before(root);
  else target.after(root);
  return root;
}

/** @param {number | string} given */
function length(given) {
  return typeof given === 'string' && !/^\d+$/.test(given) ? given : `${given}px`;
}
