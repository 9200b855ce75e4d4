// The parts of a page that the SDK uses: elements that store their properties, media that consist only of names, and a camera.

let made = 0;

export class FakeElement {
  nodeType = 1;
  id = '';
  className = '';
  /** @type {FakeElement[]} */
  children = [];
  /** @type {FakeElement | null} */
  parent = null;
  /** @type {Record<string, string>} */
  style = {};
  /** @type {Record<string, string>} */
  attributes = {};
  /** @type {Map<string, ((event: any) => void)[]>} */
  listeners = new Map();
  /** @type {any} */
  srcObject = null;
  muted = false;
  volume = 1;
  videoWidth = 0;
  videoHeight = 0;
  /** @type {boolean | null} whether it is in the document; null if that depends on its parent */
  inDocument = null;
  /** Where it is in the window. Tests with `fake-view.mjs` move it. */
  rectangle = { left: 0, top: 0, right: 640, bottom: 480, width: 640, height: 480 };
  /** @type {Error | null} the error of play(), unless muted */
  refusal = null;

  /** @param {string} tagName */
  constructor(tagName) {
    this.tagName = tagName;
  }

  get classList() {
    const classes = () => this.className.split(' ').filter(Boolean);
    const write = (/** @type {string[]} */ all) => { this.className = [...new Set(all)].join(' '); };
    return {
      add: (/** @type {string[]} */ ...names) => write([...classes(), ...names]),
      remove: (/** @type {string} */ name) => write(classes().filter((known) => known !== name)),
      toggle: (/** @type {string} */ name, /** @type {boolean} */ on) => write([...classes().filter((known) => known !== name), ...on ? [name] : []]),
      contains: (/** @type {string} */ name) => classes().includes(name),
    };
  }

  /** An element without a parent stands for one that the program has not inserted. */
  get isConnected() {
    return this.inDocument ?? this.parent !== null;
  }

  get firstElementChild() {
    return this.children[0] ?? null;
  }

  get ownerDocument() {
    return globalThis.document;
  }

  getBoundingClientRect() {
    return this.rectangle;
  }

  /** @param {FakeElement[]} elements */
  append(...elements) {
    for (const element of elements) {
      element.remove();
      element.parent = this;
      this.children.push(element);
    }
  }

  /** @param {FakeElement[]} elements */
  replaceChildren(...elements) {
    this.children = [];
    this.append(...elements);
  }

  /** @param {FakeElement} element */
  after(element) {
    this.#beside(element, 1);
  }

  /** @param {FakeElement} element */
  before(element) {
    this.#beside(element, 0);
  }

  remove() {
    if (this.parent) this.parent.children = this.parent.children.filter((child) => child !== this);
    this.parent = null;
  }

  /** @param {string} name @param {string} value */
  setAttribute(name, value) {
    this.attributes[name] = value;
  }

  /** @param {string} name @param {(event: any) => void} listener */
  addEventListener(name, listener) {
    this.listeners.set(name, [...this.listeners.get(name) ?? [], listener]);
  }

  /** @param {string} name @param {object} [members] of the event */
  happen(name, members = {}) {
    for (const listener of this.listeners.get(name) ?? []) listener({ type: name, ...members });
  }

  /** @returns {Promise<void>} */
  play() {
    return this.refusal && !this.muted ? Promise.reject(this.refusal) : Promise.resolve();
  }

  /** @param {FakeElement} element @param {number} offset */
  #beside(element, offset) {
    const { parent } = this;
    if (!parent) return;
    element.parent = parent;
    parent.children.splice(parent.children.indexOf(this) + offset, 0, element);
  }
}

export class FakeTrack extends EventTarget {
  enabled = true;
  readyState = 'live';
  /** @type {Record<string, unknown>} */
  settings = {};

  /** @param {string} kind @param {Record<string, unknown>} [settings] */
  constructor(kind, settings = {}) {
    super();
    this.kind = kind;
    this.id = `track ${made += 1}`;
    this.settings = settings;
  }

  getSettings() {
    return this.settings;
  }

  stop() {
    this.readyState = 'ended';
  }

  /** Simulates unplugging. */
  end() {
    this.stop();
    this.dispatchEvent(new Event('ended'));
  }
}

export class FakeMediaStream {
  /** @param {any[]} [tracks] */
  constructor(tracks = []) {
    this.id = `media${made += 1}`;
    this.tracks = [...tracks];
  }

  getTracks() {
    return [...this.tracks];
  }

  /** @param {any} track */
  addTrack(track) {
    this.tracks.push(track);
  }

  /** @param {any} track */
  removeTrack(track) {
    this.tracks = this.tracks.filter((known) => known !== track);
  }
}

/** The connected cameras and microphones, and the browser's answers. */
export class FakeDevices {
  /** @type {{kind: string, deviceId: string, label: string}[]} */
  devices = [
    { kind: 'audioinput', deviceId: 'mic', label: 'Microphone' },
    { kind: 'videoinput', deviceId: 'front', label: 'Front' },
    { kind: 'videoinput', deviceId: 'back', label: 'Back' },
    { kind: 'audiooutput', deviceId: 'speaker', label: 'Speaker' },
  ];
  /** @type {any[]} the requested constraints */
  asked = [];
  /** @type {FakeTrack[]} the returned tracks */
  given = [];
  /** @type {(constraints: any) => Error | null} */
  refuse = () => null;
  /** @type {(track: FakeTrack) => void} called with each returned track */
  opened = () => {};
  /** @type {Promise<void>} resolves when the user answers the permission request */
  decision = Promise.resolve();

  async enumerateDevices() {
    return this.devices;
  }

  /** @param {any} constraints */
  async getUserMedia(constraints) {
    this.asked.push(constraints);
    await this.decision;
    const refusal = this.refuse(constraints);
    if (refusal) throw refusal;
    const { audio, video } = constraints;
    const tracks = [
      ...audio ? [new FakeTrack('audio', { deviceId: audio.deviceId?.exact ?? 'mic' })] : [],
      ...video ? [new FakeTrack('video', { deviceId: video.deviceId?.exact ?? 'front', width: 640, height: 480 })] : [],
    ];
    tracks.forEach((track) => this.opened(track));
    this.given.push(...tracks);
    return new FakeMediaStream(tracks);
  }

  async getDisplayMedia() {
    return new FakeMediaStream([new FakeTrack('video', { displaySurface: 'monitor', width: 1280, height: 720 })]);
  }
}

/** Installs a separate page for a test. */
export function installPage() {
  const body = new FakeElement('body');
  const devices = new FakeDevices();
  /** @param {FakeElement} element @param {string} id @returns {FakeElement | undefined} */
  const find = (element, id) => (element.id === id ? element : element.children.map((child) => find(child, id)).find(Boolean));
  const fakes = {
    document: { body, createElement: (/** @type {string} */ name) => new FakeElement(name), getElementById: (/** @type {string} */ id) => find(body, id) ?? null },
    MediaStream: FakeMediaStream,
    navigator: { mediaDevices: devices },
  };
  for (const [name, value] of Object.entries(fakes)) Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
  /** Returns a new element of the page. */
  const element = () => {
    const made = new FakeElement('div');
    body.append(made);
    return /** @type {any} */ (made);
  };
  return { body, devices, element };
}
