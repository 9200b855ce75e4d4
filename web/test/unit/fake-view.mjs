// The parts of a window that tell what is visible: observers of elements, and the page's visibility. Call after `installPage`.

export class FakeWindow {
  /** @type {FakeObserver[]} */
  observers = [];
  visibilityState = 'visible';
  isFirefox = false;
  #events = new EventTarget();

  constructor() {
    const observers = this.observers;
    /** @param {string} kind */
    const observerClass = (kind) => class extends FakeObserver {
      /** @param {(entries: any[]) => void} reported */
      constructor(reported) {
        super(kind, reported);
        observers.push(this);
      }
    };
    const view = this;
    Object.assign(globalThis.document, {
      addEventListener: this.#events.addEventListener.bind(this.#events),
    });
    Object.defineProperty(globalThis.document, 'visibilityState', { get: () => view.visibilityState, configurable: true });
    Object.assign(globalThis.document, { pictureInPictureEnabled: true });
    const fakes = {
      IntersectionObserver: observerClass('intersection'), ResizeObserver: observerClass('size'),
      innerWidth: 1280, innerHeight: 720, devicePixelRatio: 1,
    };
    for (const [name, value] of Object.entries(fakes)) Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
  }

  /** Removes the fakes, because other tests in this file have no window. */
  remove() {
    for (const name of ['IntersectionObserver', 'ResizeObserver', 'innerWidth', 'innerHeight', 'devicePixelRatio']) {
      Reflect.deleteProperty(globalThis, name);
    }
  }

  /** @param {any} element @param {number} width @param {number} height */
  resize(element, width, height) {
    element.rectangle = { ...element.rectangle, right: element.rectangle.left + width, bottom: element.rectangle.top + height, width, height };
    for (const observer of this.observers) if (observer.kind === 'size' && observer.targets.has(element)) observer.reported([{ target: element }]);
  }

  /** @param {any} element @param {boolean} isIntersecting */
  scroll(element, isIntersecting) {
    for (const observer of this.observers) {
      if (observer.kind === 'intersection' && observer.targets.has(element)) observer.reported([{ target: element, isIntersecting }]);
    }
  }

  /** @param {'visible' | 'hidden'} state of the page */
  turn(state) {
    this.visibilityState = state;
    this.#events.dispatchEvent(new Event('visibilitychange'));
  }
}

class FakeObserver {
  /** @type {Set<any>} */
  targets = new Set();

  /** @param {string} kind @param {(entries: any[]) => void} reported */
  constructor(kind, reported) {
    this.kind = kind;
    this.reported = reported;
  }

  /** @param {any} target */
  observe(target) {
    this.targets.add(target);
  }

  disconnect() {
    this.targets.clear();
  }
}
