// Functions that run inside pages. A function is sent as source text, so it must not use anything that is defined outside it.

/** Returns the source of a call that runs `fn` inside a page. */
export function source(fn, ...args) {
  return `(${fn})(${args.map((argument) => JSON.stringify(argument) ?? 'undefined').join(', ')})`;
}

/**
 * Stores every RTCPeerConnection of the page in `window.__peers`, so that tests can read statistics without the page's help,
 * and the ICE states of each connection in its `__iceStates`.
 */
export function keepPeers() {
  const Native = window.RTCPeerConnection;
  if (!Native || window.__peers) return;
  window.__peers = [];
  window.RTCPeerConnection = new Proxy(Native, {
    construct(target, args, newTarget) {
      const peer = Reflect.construct(target, args, newTarget);
      window.__peers.push(peer);
      peer.__iceStates = [];
      peer.addEventListener('iceconnectionstatechange', () => peer.__iceStates.push(peer.iceConnectionState));
      return peer;
    },
  });
}

/**
 * Replaces camera and microphone with a video of one color and a tone. Every page gets its own color, whatever flags its
 * browser was started with. Unlike in Firefox's fake camera, the color does not drift.
 *
 * @param {{color: string, tone: number, nativeSound: boolean, screen?: {color: string, tone: number}}} options `nativeSound`:
 *   whether to use the browser's own fake microphone, for engines whose AudioContext never starts without a sound card;
 *   `screen`: replaces the screen and its sound too. `navigator.mediaDevices.__screen` is what was captured last
 */
export function paintMedia({ color, tone, nativeSound, screen }) {
  const devices = navigator.mediaDevices;
  if (!devices || devices.__painted) return; // undefined where the page is no secure context
  devices.__painted = true;
  const native = devices.getUserMedia.bind(devices);
  const width = 320;
  const height = 240;
  const framesPerSecond = 15;

  function picture(background) {
    const canvas = document.createElement('canvas');
    canvas.width = width;
    canvas.height = height;
    const context = canvas.getContext('2d');
    let frame = 0;
    const paint = () => {
      context.fillStyle = background;
      context.fillRect(0, 0, width, height);
      // Something must move, because encoders otherwise send almost nothing. It must not move in the middle, where tests read
      // the color.
      context.fillStyle = 'white';
      context.fillRect((frame * 4) % (width - 20), 8, 20, 20);
      frame += 1;
    };
    paint();
    const stream = canvas.captureStream(framesPerSecond);
    const [track] = stream.getVideoTracks();
    // Use a timer, because requestAnimationFrame stops in hidden pages, unlike a camera.
    const timer = setInterval(() => (track.readyState === 'ended' ? clearInterval(timer) : paint()), 1000 / framesPerSecond);
    return track;
  }

  function sound(frequency) {
    const context = new AudioContext();
    const oscillator = new OscillatorNode(context, { frequency });
    const volume = new GainNode(context, { gain: 0.5 });
    const destination = new MediaStreamAudioDestinationNode(context);
    oscillator.connect(volume).connect(destination);
    oscillator.start();
    // Without a user gesture, the context starts suspended and sends silence until there is a gesture.
    for (const gesture of ['pointerdown', 'keydown']) {
      window.addEventListener(gesture, () => context.resume(), { capture: true, once: true });
    }
    return destination.stream.getAudioTracks()[0];
  }

  devices.getUserMedia = async (constraints = {}) => {
    if (!constraints.audio && !constraints.video) throw new TypeError('audio or video must be asked for');
    const tracks = [];
    if (constraints.video) tracks.push(picture(color));
    if (constraints.audio) {
      tracks.push(nativeSound ? (await native({ audio: true })).getAudioTracks()[0] : sound(tone));
    }
    return new MediaStream(tracks);
  };
  if (screen) {
    devices.getDisplayMedia = async ({ audio } = {}) => {
      devices.__screen = new MediaStream([picture(screen.color), ...audio ? [sound(screen.tone)] : []]);
      return devices.__screen;
    };
  }
  devices.enumerateDevices = async () => [
    { kind: 'audioinput', deviceId: 'tone', groupId: 'painted', label: 'A tone' },
    { kind: 'videoinput', deviceId: 'picture', groupId: 'painted', label: 'A painted picture' },
  ];
}

/**
 * Adds a second camera, with a picture of another color, and headphones beside the loudspeakers. A player remembers its output in
 * `sinkId`, although there is none.
 *
 * @param {{color: string}} options
 */
export function addDevices({ color }) {
  const devices = navigator.mediaDevices;
  if (!devices) return; // where the page is no secure context
  const [first, list] = [devices.getUserMedia, devices.enumerateDevices];
  devices.getUserMedia = async (constraints = {}) => {
    if (constraints.video?.deviceId?.exact !== 'second') return first(constraints);
    const canvas = Object.assign(document.createElement('canvas'), { width: 320, height: 240 });
    const context = canvas.getContext('2d');
    setInterval(() => {
      context.fillStyle = color;
      context.fillRect(0, 0, 320, 240);
    }, 100);
    return canvas.captureStream(10);
  };
  devices.enumerateDevices = async () => [
    ...await list(),
    { kind: 'videoinput', deviceId: 'second', groupId: 'second', label: 'Another picture' },
    { kind: 'audiooutput', deviceId: 'default', groupId: 'out', label: 'Loudspeakers' },
    { kind: 'audiooutput', deviceId: 'headphones', groupId: 'out', label: 'Headphones' },
  ];
  const outputs = new WeakMap();
  Object.defineProperty(HTMLMediaElement.prototype, 'sinkId', { get() { return outputs.get(this) ?? ''; } });
  HTMLMediaElement.prototype.setSinkId = async function (deviceId) { outputs.set(this, deviceId); };
}

/** Makes the page appear to lack permission for camera and microphone. Requesting the permission then succeeds. */
export function notAskedYet() {
  const native = navigator.permissions.query.bind(navigator.permissions);
  navigator.permissions.query = async (descriptor) => {
    if (!['camera', 'microphone'].includes(descriptor.name)) return native(descriptor);
    return Object.assign(new EventTarget(), { name: descriptor.name, state: 'prompt', onchange: null });
  };
}

/**
 * Sets the location, for engines whose protocol cannot.
 *
 * @param {{latitude: number, longitude: number}} place
 */
export function standAt(place) {
  navigator.geolocation.watchPosition = (tell) => {
    queueMicrotask(() => tell({ coords: { ...place, accuracy: 20 }, timestamp: Date.now() }));
    return 1;
  };
}

/** Simulates that the only microphone is unplugged during a call. `window.plugIn` plugs it in again. */
export function unplugMicrophone() {
  const devices = navigator.mediaDevices;
  const before = devices.getUserMedia;
  window.plugIn = () => {
    devices.getUserMedia = before;
    devices.dispatchEvent(new Event('devicechange'));
  };
  devices.getUserMedia = () => Promise.reject(new DOMException('unplugged for a test', 'NotFoundError'));
  for (const { track } of window.__peers.flatMap((peer) => peer.getSenders())) {
    if (track?.kind !== 'audio') continue;
    track.stop();
    track.dispatchEvent(new Event('ended'));
  }
}

/** Makes every request for camera or microphone fail with this error, such as NotAllowedError or NotFoundError. */
export function failMedia(errorName) {
  navigator.mediaDevices.getUserMedia = () => Promise.reject(new DOMException('failed for a test', errorName));
}

/**
 * Returns the average color in the middle of a playing video as `{rgb}`, or the reason why there is no color as `{missing}`.
 * `top` chooses another height: 0 is the top of the video, and 0.75 the bottom.
 */
export function middleColor(selector, top = 3 / 8) {
  const video = document.querySelector(selector);
  if (!video) return { missing: `no element ${selector}` };
  if (video.readyState < HTMLMediaElement.HAVE_CURRENT_DATA || !video.videoWidth) return { missing: 'no frame' };
  if (video.paused) return { missing: 'paused' };
  const size = 16;
  const canvas = document.createElement('canvas');
  canvas.width = size;
  canvas.height = size;
  const context = canvas.getContext('2d', { willReadFrequently: true });
  const { videoWidth: width, videoHeight: height } = video;
  context.drawImage(video, width * 3 / 8, height * top, width / 4, height / 4, 0, 0, size, size);
  const { data } = context.getImageData(0, 0, size, size);
  const sum = [0, 0, 0];
  for (let pixel = 0; pixel < data.length; pixel += 4) {
    for (let channel = 0; channel < 3; channel += 1) sum[channel] += data[pixel + channel];
  }
  return { rgb: sum.map((total) => Math.round(total / (size * size))) };
}

/** Returns the states of the page's open peer connections, and statistics about the received media. */
export async function receivedMedia() {
  const total = { framesDecoded: 0, videoPackets: 0, audioPackets: 0, audioLevel: 0, audioEnergy: 0, states: [] };
  for (const peer of window.__peers ?? []) {
    if (peer.connectionState === 'closed') continue;
    total.states.push(`${peer.signalingState}/${peer.iceConnectionState}/${peer.connectionState}`);
    for (const entry of (await peer.getStats()).values()) {
      if (entry.type !== 'inbound-rtp') continue;
      if (entry.kind === 'video') {
        total.framesDecoded += entry.framesDecoded ?? 0;
        total.videoPackets += entry.packetsReceived ?? 0;
      } else {
        total.audioPackets += entry.packetsReceived ?? 0;
        total.audioLevel = Math.max(total.audioLevel, entry.audioLevel ?? 0);
        total.audioEnergy += entry.totalAudioEnergy ?? 0;
      }
    }
  }
  return total;
}

/**
 * Replaces what a page gives to the rest of the device: the clipboard, the share sheet and Picture in Picture. Stores what it gave
 * in `window.__given`.
 */
export function keepGiven() {
  window.__given = [];
  const keep = async (is, what) => { window.__given.push([is, what]); };
  Object.defineProperty(navigator, 'clipboard', { value: { writeText: (text) => keep('clipboard', text) } });
  navigator.share = (data) => keep('share', data);
  Object.defineProperty(document, 'pictureInPictureEnabled', { value: true });
  HTMLVideoElement.prototype.requestPictureInPicture = function () { return keep('float', this.getAttribute('aria-label')); };
}

/** Stores every message that any WebSocket of the page receives in `window.__heard`, with its text and its time (`at`). */
export function keepMessages() {
  const Native = window.WebSocket;
  if (window.__heard) return;
  window.__heard = [];
  window.WebSocket = class extends Native {
    constructor(...args) {
      super(...args);
      this.addEventListener('message', ({ data }) => {
        window.__heard.push({ at: performance.now(), text: typeof data === 'string' ? data : `binary: ${data}` });
      });
    }
  };
}

/** Stores in `window.__shown` the time when each of the partner's video elements painted its first frame. */
export function keepFirstFrames() {
  if (window.__shown) return;
  window.__shown = [];
  const known = new WeakSet();
  const look = () => {
    for (const video of document.querySelectorAll('.OT_subscriber video')) {
      if (known.has(video)) continue;
      known.add(video);
      video.requestVideoFrameCallback(() => window.__shown.push(performance.now()));
    }
  };
  new MutationObserver(look).observe(document, { childList: true, subtree: true });
}

/**
 * Returns details of the page's open peer connections: the `direction` of their transceivers, the encryption (`transport`), the
 * selected candidate `pair`, the known remote candidates, and the totals `sent` and `received`.
 */
export async function peerDetails() {
  const details = [];
  for (const peer of window.__peers ?? []) {
    if (peer.connectionState === 'closed') continue;
    const stats = await peer.getStats();
    const all = [...stats.values()];
    const transport = all.find(({ type }) => type === 'transport');
    // Firefox marks the selected pair. Chromium does not mark it, and earlier pairs stay nominated.
    const pairs = all.filter(({ type }) => type === 'candidate-pair');
    const pair = stats.get(transport?.selectedCandidatePairId) ?? pairs.find(({ selected }) => selected)
      ?? pairs.find(({ nominated, state }) => nominated && state === 'succeeded');
    const end = (id) => {
      const { address, port, protocol, candidateType, tcpType } = stats.get(id) ?? {};
      return { address, port, protocol, candidateType, tcpType };
    };
    const count = (type, kind) => {
      const sum = {};
      for (const entry of all.filter((one) => one.type === type && one.kind === kind)) {
        for (const [name, value] of Object.entries(entry)) if (typeof value === 'number') sum[name] = (sum[name] ?? 0) + value;
      }
      return sum;
    };
    details.push({
      number: window.__peers.indexOf(peer),
      iceStates: peer.__iceStates,
      direction: peer.getTransceivers()[0]?.direction,
      ufrag: peer.localDescription?.sdp.match(/a=ice-ufrag:(\S+)/)?.[1],
      state: `${peer.signalingState}/${peer.iceConnectionState}/${peer.connectionState}`,
      transport: transport && {
        srtpCipher: transport.srtpCipher, dtlsState: transport.dtlsState, tlsVersion: transport.tlsVersion,
        dtlsCipher: transport.dtlsCipher,
      },
      pair: pair && { local: end(pair.localCandidateId), remote: end(pair.remoteCandidateId), roundTrip: pair.currentRoundTripTime },
      remoteCandidates: all.filter(({ type }) => type === 'remote-candidate').map(({ id }) => end(id)),
      sent: { audio: count('outbound-rtp', 'audio'), video: count('outbound-rtp', 'video') },
      received: { audio: count('inbound-rtp', 'audio'), video: count('inbound-rtp', 'video') },
    });
  }
  return details;
}

/**
 * Runs on an element. Returns where to click as `{x, y}`, or the reason why the element cannot be clicked yet as `{blocked}`,
 * because a test must not do what a user could not do. An element that moves within two frames cannot be clicked, because the
 * click would miss it. If it moves later, the click has no effect, and `clickArrived` returns false.
 *
 * @this {HTMLElement}
 */
export async function clickPoint() {
  if (!this.isConnected) return { blocked: 'it is no longer in the page', isGone: true };
  if (this.matches(':disabled') || this.closest('[aria-disabled=true]')) return { blocked: 'it is disabled' };
  if (!this.checkVisibility({ visibilityProperty: true })) return { blocked: 'it is not visible' };
  this.scrollIntoView({ block: 'center', inline: 'center', behavior: 'instant' });
  // The timer is needed for pages that draw no frames.
  const nextFrame = () => new Promise((done) => { requestAnimationFrame(done); setTimeout(done, 100); });
  const before = this.getBoundingClientRect();
  await nextFrame();
  await nextFrame();
  const box = this.getBoundingClientRect();
  if (!box.width || !box.height) return { blocked: 'it has no size' };
  if (box.left !== before.left || box.top !== before.top) return { blocked: 'it is moving' };
  const x = box.left + box.width / 2;
  const y = box.top + box.height / 2;
  const hit = document.elementFromPoint(x, y);
  const element = this;
  const labels = this.labels ?? [];
  const reached = hit && [element, ...labels].some((target) => target.contains(hit));
  if (!reached) {
    const what = hit ? `<${hit.localName} class="${hit.className}">` : 'nothing: it is outside the window';
    return { blocked: `at its middle lies ${what}` };
  }
  const events = ['pointerdown', 'mousedown', 'pointerup', 'mouseup', 'click'];
  window.__click?.end();
  const click = window.__click = { arrived: false, end: () => events.forEach((name) => window.removeEventListener(name, watch, true)) };
  function watch(event) {
    // The page itself may click other elements, such as a link that saves a file.
    if (!event.isTrusted) return;
    if ([element, ...labels].some((target) => target.contains(event.target))) {
      click.arrived ||= event.type === 'click';
      return;
    }
    event.preventDefault();
    event.stopImmediatePropagation();
  }
  for (const name of events) window.addEventListener(name, watch, true);
  return { x, y };
}

/** Runs in a page. Whether the click since `clickPoint` has reached its element; true if it has led to another document. */
export function clickArrived() {
  const click = window.__click;
  click?.end();
  window.__click = undefined;
  return click?.arrived ?? true;
}

/**
 * Runs in every document: keeps the page's WebSocket, the session, and the page's own stream and one of another, so that a test can
 * add messages of the server with `pretend`.
 */
export function keepSocket() {
  const Native = window.WebSocket;
  window.__streams = {};
  window.WebSocket = class extends Native {
    constructor(...args) {
      super(...args);
      window.__socket = this;
      this.addEventListener('message', ({ data }) => {
        const { seq, type, stream, streams, sessionId } = JSON.parse(data);
        if (seq) window.__seq = seq;
        if (type === 'session.published') {
          window.__session = sessionId;
          window.__streams.own = stream.streamId;
        }
        if (type === 'session.streamCreated') window.__streams.theirs = stream.streamId;
        if (streams?.[0]) window.__streams.theirs = streams[0].streamId;
      });
    }
  };
}

/**
 * Runs in a page with `keepSocket`: adds a message about its session, as if the server had sent it. The server's next message is then
 * a duplicate for the page, so a test adds few.
 */
export function pretend(members) {
  window.__seq += 1;
  const message = { seq: window.__seq, ack: 0, sessionId: window.__session, ...members };
  window.__socket.dispatchEvent(new MessageEvent('message', { data: JSON.stringify(message) }));
}
