// A stand-in for the SDK with the same face and no server: screens can be looked at without one. A page loaded with it is
// led through `window.fake`.

class Emitter {
  #listeners = new Map();
  on(names, listener) {
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
