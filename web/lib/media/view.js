// Observes how a video is shown: whether it is hidden, and how large it is on the screen. A subscriber requests no
// larger video. Invariant: a video that might be visible is never reported as hidden.

/** @typedef {import('./preference.js').Size} Size */
/**
 * @typedef {object} View
 * @property {boolean} isHidden
 * @property {Size | null} size the size at which the whole frame is drawn, in device pixels; null if it is unknown,
 *   or the video is hidden
 */
/** @type {View} The view assumed for a video that cannot be measured. */
export const unknownView = { isHidden: false, size: null };

/** Maximum device pixels per CSS pixel to request. With more, a video looks no better. */
const maxPixelRatio = 2;
/** How far outside the window a video counts as visible, in CSS pixels: it is requested before the user has scrolled to it. */
const margin = 100;
/** Sizes are rounded up to a multiple of this, so that changes of a few pixels are ignored. */
const step = 16;

/**
 * Returns the size at which a whole frame is drawn, rounded up to multiples of `step`. With `cover`, the frame is at
 * least as large as the box, which crops it. With `contain`, it is at most as large as the box.
 * @param {Size} box
 * @param {Size} picture 0 × 0 if it is unknown, in which case the result is the box
 * @param {'cover' | 'contain'} fitMode
 * @returns {Size}
 */
export function drawnSize(box, picture, fitMode) {
  const isKnown = picture.width > 0 && picture.height > 0;
  const scales = isKnown ? [box.width / picture.width, box.height / picture.height] : [];
  const scale = fitMode === 'contain' ? Math.min(...scales) : Math.max(...scales);
  const { width, height } = isKnown ? { width: picture.width * scale, height: picture.height * scale } : box;
  return { width: rounded(width), height: rounded(height) };
}

/** @param {number} pixels */
const rounded = (pixels) => Math.ceil(Math.round(pixels) / step) * step;

/** @param {View} one @param {View} other */
export function isSameView(one, other) {
  return one.isHidden === other.isHidden && one.size?.width === other.size?.width && one.size?.height === other.size?.height;
}

/** Observes a video element. */
export class ViewObserver {
  #video;
  #changed;
  /** @type {boolean | null} whether the video is in or near the window; null until the browser has reported it */
  #isInWindow = null;
  #wasConnected = false;
  /** @type {Size | null} the Picture in Picture window, while the video is in it; otherwise null */
  #floating = null;
  #done = new AbortController();
  #stopObserving = () => {};
  #isSupported;

  /** @param {HTMLVideoElement} video @param {() => void} changed called when the view may have changed */
  constructor(video, changed) {
    this.#video = video;
    this.#changed = changed;
    this.#isSupported = typeof IntersectionObserver === 'function' && typeof ResizeObserver === 'function';
    if (this.#isSupported) this.#observe();
  }

  stop() {
    this.#done.abort();
    this.#stopObserving();
  }

  /**
   * Measures the video now.
   * @param {Size} picture the size of the stream's video
   * @param {'cover' | 'contain'} fitMode
   * @returns {View}
   */
  look(picture, fitMode) {
    const video = this.#video;
    if (!this.#isSupported) return unknownView;
    // A video that was never in a document may be drawn to a canvas. One that was removed from the document is no longer visible.
    if (!video.isConnected) return this.#wasConnected ? { isHidden: true, size: null } : unknownView;
    this.#wasConnected = true;
    const ratio = Math.min(maxPixelRatio, globalThis.devicePixelRatio || 1);
    const rectangle = video.getBoundingClientRect();
    const { width, height } = this.#floating ?? rectangle;
    const isHidden = this.#floating === null
      && (width * height === 0 || isPageHidden(video.ownerDocument) || !(this.#isInWindow ?? isInWindow(rectangle)));
    return { isHidden, size: isHidden ? null : drawnSize({ width: width * ratio, height: height * ratio }, picture, fitMode) };
  }

  #observe() {
    const video = this.#video;
    // Browsers apply `rootMargin` to the window, and `scrollMargin` to the scrolling elements in it.
    const margins = { rootMargin: `${margin}px`, scrollMargin: `${margin}px` };
    const intersections = new IntersectionObserver((entries) => {
      this.#isInWindow = entries[entries.length - 1].isIntersecting;
      this.#changed();
    }, margins);
    const sizes = new ResizeObserver(() => this.#changed());
    intersections.observe(video);
    sizes.observe(video);
    this.#stopObserving = () => {
      intersections.disconnect();
      sizes.disconnect();
    };
    const { signal } = this.#done;
    document.addEventListener('visibilitychange', () => this.#changed(), { signal });
    // Zooming changes the device pixel ratio and fires this event.
    globalThis.addEventListener?.('resize', () => this.#changed(), { signal });
    video.addEventListener('enterpictureinpicture', (event) => this.#float(/** @type {any} */ (event).pictureInPictureWindow), { signal });
    video.addEventListener('leavepictureinpicture', () => this.#float(null), { signal });
  }

  /** @param {(Size & EventTarget) | null} window */
  #float(window) {
    this.#floating = window;
    window?.addEventListener?.('resize', () => this.#changed(), { signal: this.#done.signal });
    this.#changed();
  }
}

/**
 * Returns true if the page is in the background, so that its videos are not visible. Always returns false in Firefox,
 * which does not report its Picture in Picture to pages, so a video may be visible although its page is not.
 * @param {Document} document
 */
const isPageHidden = (document) => document.visibilityState === 'hidden' && 'pictureInPictureEnabled' in document;

/** @param {DOMRect} rectangle */
const isInWindow = ({ top, left, bottom, right }) => (
  bottom >= -margin && right >= -margin && top <= globalThis.innerHeight + margin && left <= globalThis.innerWidth + margin);
