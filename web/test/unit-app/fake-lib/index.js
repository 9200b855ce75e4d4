// A stand-in for the SDK with the same face and no server: screens can be looked at without one. A page loaded with it is
// led through `window.fake`.

class Emitter {
  #listeners = new Map();
  on(names, listener) {
    if (typeof names === 'object') {
      for (const [name, each] of Object.entries(names)) this.on(name, each);
      return this;
    }
    for (const name of names.split(' ')) this.#listeners.set(name, [...(this.#listeners.get(name) ?? []), listener]);
    return this;
  }
  emit(name, detail) {
    for (const listener of this.#listeners.get(name) ?? []) listener(detail);
  }
}

const fake = { client: null, roulette: null, calls: [], mediaError: null, refuse: {}, hidesAddress: false, count: { online: 1, waiting: 0 }, autoConnect: true };
window.fake = Object.assign(fake, window.fakeOptions);

export class ConfabError extends Error {
  constructor(members) {
    super(members.message);
    Object.assign(this, members);
  }
}

export class Client extends Emitter {
  welcome = null;
  constructor(options) {
    super();
    this.options = options;
    fake.client = this;
  }
  async connect() {
    if (!fake.autoConnect) return new Promise(() => {});
    await null;
    this.welcome = { ice: { relayOnly: fake.hidesAddress } };
    this.emit('connected', { resumed: false });
  }
}

export class People extends Emitter {
  constructor() {
    super();
    fake.people = this;
  }
  async #answer(verb, answer, ...args) {
    fake.calls.push([verb, ...args]);
    if (fake.refuse[verb]) throw new ConfabError(fake.refuse[verb]);
    return answer;
  }
  #self = { personId: 'e'.repeat(32), name: 'Gentle Otter', visible: true, doNotDisturb: false, ringable: 'everyone', hasPosition: false };
  async appear({ name, ...as }) {
    await this.#answer('appear', null, as);
    return this.set({ ...as, name: name || this.#self.name });
  }
  async set(change) {
    Object.assign(this.#self, change);
    this.emit('self', { ...this.#self });
  }
  async watch(page) {
    await this.#answer('watch', null, page);
    this.emit('nearby', { people: fake.nearby ?? [], next: fake.nextPage });
  }
  move(fix) { return this.#answer('move', undefined, fix); }
  find(personId) { return this.#answer('find', { personId, name: 'Ann', online: true }, personId); }
  contacts() { return this.#answer('contacts', fake.contacts ?? []); }
  devices() { return this.#answer('devices', fake.devices ?? []); }
  blocked() { return this.#answer('blocked', fake.blocked ?? []); }
  makeLinkCode() { return this.#answer('makeLinkCode', { code: 'ABCD-EFGH', expiresInMs: 300_000 }); }
  keep(meeting) { return this.#answer('keep', undefined, meeting); }
}
for (const verb of ['leave', 'unwatch', 'forgetPosition', 'removeContact', 'useLink', 'unlink', 'block', 'unblock', 'deleteEverything']) {
  People.prototype[verb] = async (...args) => { fake.calls.push([verb, ...args]); };
}

/** A call that does what it is told through `set`. */
class FakeCall extends Emitter {
  id = 'c1';
  withVideo = false;
  waiting = false;
  devices = 0;
  partnerState = 'connected';
  isOver = false;
  constructor(members) {
    super();
    Object.assign(this, members);
  }
  set(change) {
    Object.assign(this, change);
    this.emit('change', { call: this });
  }
  finish(outcome, durationMs) {
    this.isOver = true;
    this.emit('ended', { outcome, durationMs });
  }
  async accept() { this.set({ state: 'joining' }); }
  async decline() { this.finish('declined'); }
  async end() { this.finish(this.state === 'active' ? 'ended' : 'cancelled', this.state === 'active' ? 63_000 : undefined); }
  async setVideo() {}
}

export class Calls extends Emitter {
  constructor(client, people, options) {
    super();
    fake.callsOf = this;
    this.options = options;
  }
  start(personId, { video }) {
    return fake.call = new FakeCall({ direction: 'outgoing', state: 'placing', video, person: { personId, name: '', online: true } });
  }
  ring(members) {
    const call = new FakeCall({ direction: 'incoming', state: 'incoming', video: true, id: `c${Math.random()}`, ...members });
    this.emit('incoming', call);
    return call;
  }
  async log() { return { calls: fake.log ?? [] }; }
  async forget() {}
  async seen() {}
}
fake.showOther = (name) => fake.callsOf.options.subscriberTarget.replaceChildren(element('subscriber', name, 20));

export const pushState = async () => 'off';
export const enablePush = async () => {};
export const disablePush = async () => {};

export class Roulette extends Emitter {
  constructor(client, options) {
    super();
    fake.roulette = this;
    this.options = options;
  }
  usePublisher() {}
  async #call(verb, ...args) {
    fake.calls.push([verb, ...args]);
    if (fake.refuse[verb]) throw new ConfabError(fake.refuse[verb]);
  }
  start(options) { return this.#call('start', options); }
  next() { return this.#call('next'); }
  stop() { return this.#call('stop'); }
  report(reason, matchId) { return this.#call('report', reason, matchId); }
  block(matchId) { return this.#call('block', matchId); }
  sendChat(text) { return this.#call('sendChat', text).then(() => this.emit('chat', { text, mine: true })); }
  setTyping(typing) { return this.#call('setTyping', typing); }
  async count() { return fake.count; }
}

/** A moving picture that could be a person, if one does not look too closely. */
export function pictureOf(hue) {
  const canvas = Object.assign(document.createElement('canvas'), { width: 640, height: 480 });
  const context = canvas.getContext('2d');
  const paint = () => {
    const glow = context.createLinearGradient(0, 0, 640, 480);
    glow.addColorStop(0, `hsl(${hue} 35% 62%)`);
    glow.addColorStop(1, `hsl(${hue + 40} 40% 32%)`);
    context.fillStyle = glow;
    context.fillRect(0, 0, 640, 480);
    context.fillStyle = `hsl(${hue + 180} 30% 25%)`;
    context.beginPath();
    context.ellipse(320, 520, 200, 190, 0, 0, 7);
    context.fill();
    context.fillStyle = 'hsl(25 45% 65%)';
    context.beginPath();
    context.ellipse(320, 230, 84, 108, 0, 0, 7);
    context.fill();
  };
  paint();
  setInterval(paint, 200);
  return canvas.captureStream(5);
}

function element(kind, label, hue) {
  const root = document.createElement('div');
  root.className = `OT_root OT_${kind}`;
  const widget = document.createElement('div');
  widget.className = 'OT_widget-container';
  const video = Object.assign(document.createElement('video'), { className: 'OT_video-element', muted: true, playsInline: true, srcObject: pictureOf(hue) });
  video.setAttribute('aria-label', label);
  Object.assign(video.style, { width: '100%', height: '100%', objectFit: kind === 'publisher' ? 'cover' : 'contain' });
  video.play().catch(() => {});
  widget.append(video);
  root.append(widget);
  return root;
}

fake.showPartner = () => {
  const made = element('subscriber', 'Partner', 20);
  fake.roulette.options.subscriberTarget.replaceChildren(made);
  const subscriber = Object.assign(new Emitter(), { element: made });
  fake.roulette.emit('subscriber', { subscriber });
  subscriber.emit('connected');
};
fake.hidePartner = () => fake.roulette.options.subscriberTarget.replaceChildren();

class Publisher extends Emitter {
  destroy() { this.element?.remove(); }
  getVideoSource() { return { track: {} }; }
  publishAudio() {}
  publishVideo() {}
  async setVideoSource() {}
  async setAudioSource() {}
}

class Session extends Emitter {
  capabilities = { publish: 1, subscribe: 1, signal: 1 };
  connection = { connectionId: 'me' };
  connect(token, done) {
    fake.session = this;
    queueMicrotask(() => {
      if (fake.refuse.join) return done(fake.refuse.join);
      this.emit('connectionCreated', { connection: this.connection });
      for (const name of ['Alice', 'Bo', '']) {
        this.emit('connectionCreated', { connection: { connectionId: `c${name}` } });
        this.emit('streamCreated', { stream: { name } });
      }
      done();
    });
  }
  publish() {}
  subscribe(stream, target, { label }) {
    target.append(element('subscriber', label, label.length * 60));
    return new Emitter();
  }
  signal({ type, data }, done) {
    done();
    this.emit('signal', { type: `signal:${type}`, data, from: this.connection });
  }
  async disconnect() {}
}

export const OT = {
  initSession: () => new Session(),
  initPublisher(target, options, done) {
    const publisher = new Publisher();
    fake.publisher = publisher;
    if (fake.mediaPending) return publisher;
    queueMicrotask(() => {
      if (fake.mediaError) return done({ name: fake.mediaError });
      publisher.element = element('publisher', options.label, 190);
      target.append(publisher.element);
      done();
      setInterval(() => publisher.emit('audioLevelUpdated', { audioLevel: 0.2 }), 200);
    });
    return publisher;
  },
  getDevices(done) {
    done(null, [
      { kind: 'videoInput', deviceId: 'a', label: 'FaceTime HD Camera (Built-in)' }, { kind: 'videoInput', deviceId: 'b', label: 'Studio Display' },
      { kind: 'audioInput', deviceId: 'c', label: 'MacBook Pro Microphone' }, { kind: 'audioInput', deviceId: 'd', label: 'Headset' },
    ]);
  },
};
