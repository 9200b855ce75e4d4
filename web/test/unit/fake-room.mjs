// Sessions in memory, with the rules of protocol §4, behind objects that look like `Client`. Messages have a delay in each
// direction. A test may set a separate delay for each message, but each client still receives its messages in order.
import { ConfabError } from '../../lib/errors.js';
import { Emitter } from '../../lib/events.js';
import { SFUConnections } from '../../lib/media/media-link.js';
import { FakeClock } from './fake-clock.mjs';
import { FakePeerConnection, fakeRtc } from './fake-rtc.mjs';

const everything = { publish: true, subscribe: true, signal: true, forceDisconnect: true, forceUnpublish: true, forceMute: true };

/** @param {string} code */
const refusal = (code) => new ConfabError({ code, message: `No: ${code}.` });

export class FakeRoom {
  /** @type {FakeClient[]} */
  clients = [];
  /** @type {Map<string, {members: FakeClient[], streams: Map<string, {info: any, subscribers: Set<FakeClient>}>}>} */
  sessions = new Map();
  made = 0;
  capabilities = everything;
  mediaMode = 'relayed';
  muted = false;
  /** @type {object[] | undefined} the archives into which the session is recorded */
  archives;
  /** @type {object[] | undefined} the live broadcasts of the session */
  broadcasts;
  /** @type {'composed' | 'individual' | undefined} how moderators may record */
  moderatorArchives;
  /** @type {boolean[]} the answers to the question whether clients may be recorded */
  consents = [];
  /** Whether no answer arrives. */
  losesConsents = false;
  /** @type {boolean[]} the same of broadcasts */
  broadcastConsents = [];
  /** Number of connections on a page of the roster. The test sends the pages after the first with `turnPage`. */
  pageSize = 1000;
  /** The state of the clients' media with the server. */
  clock = new FakeClock();
  /** Whether the session sends as much as it may, so that no stream gets video. */
  isFull = false;
  /** @type {any} the error with which offers are refused */
  offerRefusal = null;
  /** The media sections of the server's answers. */
  sections = '';
  /** @type {number | undefined} what the connection to every client carries */
  estimate;
  /** @type {(run: () => void) => void} delivers a message */
  travel = (run) => queueMicrotask(run);

  /** @param {string} connectionId @returns {any} as a `Client` */
  client(connectionId) {
    const client = new FakeClient(this, connectionId);
    this.clients.push(client);
    return client;
  }

  /** @param {string} sessionId */
  session(sessionId) {
    const known = this.sessions.get(sessionId);
    if (known) return known;
    const session = { members: /** @type {FakeClient[]} */ ([]), streams: new Map() };
    this.sessions.set(sessionId, session);
    return session;
  }

  /** @param {FakeClient} from @param {any} message @returns {any} the members of the answer */
  handle(from, message) {
    const verb = /** @type {any} */ (this)[message.type];
    if (!verb) throw refusal('unknown_type');
    if (message.type !== 'session.join' && message.sessionId && !this.session(message.sessionId).members.includes(from)) throw refusal('not_joined');
    return verb.call(this, from, message);
  }

  /** @param {string} sessionId @param {any} message @param {FakeClient} [except] */
  broadcast(sessionId, message, except) {
    for (const member of this.session(sessionId).members) if (member !== except) member.tell({ sessionId, ...message });
  }

  /** @param {FakeClient} from @param {any} message */
  'session.join'(from, { sessionId, token }) {
    if (token !== 'good') throw refusal(token);
    const { members } = this.session(sessionId);
    const connection = from.info;
    from.others = members.map(({ info }) => info);
    this.broadcast(sessionId, { type: 'session.connectionCreated', connection });
    const joined = {
      type: 'session.joined', sessionId, connectionId: connection.connectionId, connection, mediaMode: this.mediaMode, muted: this.muted,
      capabilities: this.capabilities, ...this.page(sessionId, from), ...this.archives ? { archives: this.archives } : {},
      ...this.broadcasts ? { broadcasts: this.broadcasts } : {},
      ...this.moderatorArchives ? { moderatorArchives: this.moderatorArchives } : {},
    };
    members.push(from);
    return joined;
  }

  /** @param {string} sessionId @param {FakeClient} to */
  page(sessionId, to) {
    const connections = to.others.splice(0, this.pageSize);
    const ids = connections.map(({ connectionId }) => connectionId);
    const streams = [...this.session(sessionId).streams.values()].map(({ info }) => info).filter(({ connectionId }) => ids.includes(connectionId));
    return { connections, streams, ...to.others.length > 0 ? { more: true } : {} };
  }

  /** @param {string} sessionId @param {FakeClient} to */
  turnPage(sessionId, to) {
    to.tell({ type: 'session.roster', sessionId, ...this.page(sessionId, to) });
  }

  /** @param {FakeClient} from @param {any} message */
  'session.leave'(from, { sessionId }, reason = 'clientDisconnected') {
    const session = this.session(sessionId);
    session.members = session.members.filter((member) => member !== from);
    for (const [streamId, { info, subscribers }] of session.streams) {
      if (subscribers.delete(from)) this.owner(sessionId, info)?.tell({ type: 'session.unsubscribed', sessionId, streamId, connectionId: from.id });
      if (info.connectionId === from.id) this.remove(sessionId, streamId, reason);
    }
    this.broadcast(sessionId, { type: 'session.connectionDestroyed', connectionId: from.id, reason });
  }

  /** @param {string} sessionId @param {any} info */
  owner(sessionId, info) {
    return this.session(sessionId).members.find(({ id }) => id === info.connectionId);
  }

  /** @param {string} sessionId @param {string} streamId @param {string} reason @param {FakeClient} [except] */
  remove(sessionId, streamId, reason, except) {
    this.session(sessionId).streams.delete(streamId);
    this.broadcast(sessionId, { type: 'session.streamDestroyed', streamId, reason }, except);
  }

  /** @param {FakeClient} from @param {any} message */
  'session.publish'(from, { sessionId, name = '', initials, hasAudio, hasVideo, videoType, width, height, frameRate }) {
    const streamId = `stream-${this.made += 1}`;
    const info = { streamId, connectionId: from.id, createdAt: 2, name, initials, hasAudio, hasVideo, videoType, width, height, frameRate };
    this.session(sessionId).streams.set(streamId, { info, subscribers: new Set() });
    this.broadcast(sessionId, { type: 'session.streamCreated', stream: info }, from);
    return { type: 'session.published', sessionId, stream: info };
  }

  /** @param {FakeClient} _from @param {any} message */
  'session.consent'(_from, { accept, broadcast }) {
    if (this.losesConsents) throw refusal('rate_limited');
    (broadcast ? this.broadcastConsents : this.consents).push(accept);
  }

  /** @param {FakeClient} _from @param {any} message */
  'session.startArchive'(_from, { sessionId, name }) {
    if (!this.capabilities.forceDisconnect) throw refusal('not_permitted');
    this.broadcast(sessionId, { type: 'session.archiveStarted', archiveId: `archive-${this.made += 1}`, name });
  }

  /** @param {FakeClient} _from @param {any} message */
  'session.stopArchive'(_from, { sessionId, archiveId }) {
    this.broadcast(sessionId, { type: 'session.archiveStopped', archiveId });
  }

  /** @param {FakeClient} from @param {any} message */
  'session.unpublish'(from, { sessionId, streamId }) {
    this.remove(sessionId, streamId, 'clientUnpublished', from);
  }

  /** @param {FakeClient} _from @param {any} message */
  'session.update'(_from, { sessionId, streamId, type, seq, audioMid, videoMid, ...changes }) {
    const stream = this.session(sessionId).streams.get(streamId);
    if (!stream) throw refusal('not_found');
    if (this.isFull && changes.hasVideo) throw new ConfabError({ code: 'bandwidth_exceeded', message: 'Later.', retryable: true, retryAfterMs: 10_000 });
    stream.info = { ...stream.info, ...changes };
    this.broadcast(sessionId, { type: 'session.streamChanged', stream: stream.info });
  }

  /** @param {FakeClient} from @param {any} message */
  'session.subscribe'(from, { sessionId, streamId, audio, video, audioMid, videoMid }) {
    if (videoMid !== undefined) from.slots.set(videoMid, { streamId, audioMid });
    const stream = this.session(sessionId).streams.get(streamId);
    if (!stream) throw refusal('not_found');
    stream.subscribers.add(from);
    this.owner(sessionId, stream.info)?.tell({ type: 'session.subscribed', sessionId, streamId, connectionId: from.id, audio, video });
  }

  /** @param {FakeClient} from @param {any} message */
  'session.unsubscribe'(from, { sessionId, streamId }) {
    const stream = this.session(sessionId).streams.get(streamId);
    if (!stream?.subscribers.delete(from)) throw refusal('not_found');
    for (const [mid, slot] of from.slots) if (slot.streamId === streamId) from.slots.delete(mid);
    this.owner(sessionId, stream.info)?.tell({ type: 'session.unsubscribed', sessionId, streamId, connectionId: from.id });
  }

  /** @param {FakeClient} from @param {any} message */
  'media.offer'(from, { side, sdp }) {
    if (this.offerRefusal) throw this.offerRefusal;
    const id = Number(/^o=\S+ (\S+)/m.exec(sdp)?.[1]);
    const connection = FakePeerConnection.all.find((one) => one.id === id);
    if (from.sides[side] !== connection && side === 'receive') from.slots.clear();
    from.sides[side] = connection;
    return { type: 'media.answer', side, sdp: `o=server ${side}-${id} 1 IN IP4 0.0.0.0\r\na=setup:passive\r\n${this.sections}` };
  }

  'media.close'() {}

  'media.estimate'() {
    return { type: 'media.estimate', ...this.estimate === undefined ? {} : { bitrate: this.estimate } };
  }

  'session.connected'() {}

  /**
   * Emits an event of a stream to every client that has it in a slot.
   * @param {string} streamId
   * @param {string[]} [kinds]
   */
  flow(streamId, kinds = ['audio', 'video']) {
    for (const { slots, sides } of this.clients) {
      for (const [videoMid, slot] of slots) {
        if (slot.streamId !== streamId) continue;
        const mids = [...kinds.includes('audio') ? [slot.audioMid] : [], ...kinds.includes('video') ? [videoMid] : []];
        for (const { mid, receiver } of sides.receive?.transceivers ?? []) if (mid && mids.includes(mid)) receiver.arrive();
      }
    }
  }

  /** @param {FakeClient} from @param {any} message */
  'session.negotiate'(from, { sessionId, to, type, ...payload }) {
    const other = this.session(sessionId).members.find(({ id }) => id === to);
    if (!other) throw refusal('not_found');
    other.tell({ type, sessionId, from: from.id, ...payload });
  }

  /** @param {FakeClient} from @param {any} message */
  'session.signal'(from, { sessionId, signalType, data, to }) {
    const message = { type: 'session.signal', sessionId, from: from.id, signalType, data };
    for (const member of this.session(sessionId).members) if (to === undefined || to === member.id) member.tell(message);
  }

  /** @param {FakeClient} _from @param {any} message */
  'session.forceDisconnect'(_from, { sessionId, connectionId }) {
    const other = this.session(sessionId).members.find(({ id }) => id === connectionId);
    if (!other) throw refusal('not_found');
    other.tell({ type: 'session.left', sessionId, reason: 'forceDisconnected' });
    this['session.leave'](other, { sessionId }, 'forceDisconnected');
  }

  /** @param {FakeClient} _from @param {any} message */
  'session.forceUnpublish'(_from, { sessionId, streamId }) {
    this.remove(sessionId, streamId, 'forceUnpublished');
  }

  /** @param {FakeClient} _from @param {any} message */
  'session.forceMute'(_from, { sessionId, active, streamId, excluded = [] }) {
    if (streamId === undefined) {
      this.muted = active;
      this.broadcast(sessionId, { type: 'session.muted', active });
    }
    for (const [id, { info }] of this.session(sessionId).streams) {
      const isMeant = streamId === undefined ? active && !excluded.includes(id) : id === streamId;
      if (isMeant) this.owner(sessionId, info)?.tell({ type: 'session.muted', sessionId, active, streamId: id });
    }
  }
}

class FakeClient extends Emitter {
  state = 'connected';
  /** @type {any[]} the connections on later pages of the roster */
  others = [];
  /** @type {any[]} the client's requests, in order */
  asked = [];
  /** @type {any} */
  welcome = null;
  /** @type {Record<string, FakePeerConnection | undefined>} its connections with the server */
  sides = {};
  /** @type {Map<string, {streamId: string, audioMid: string}>} by the video mid, the stream the server sends there */
  slots = new Map();
  /** @type {SFUConnections | null} */
  #media = null;
  ice = {
    info: { servers: [{ urls: 'stun:here' }], relayOnly: false },
    current: async () => this.ice.info,
  };

  /** @param {FakeRoom} room @param {string} connectionId */
  constructor(room, connectionId) {
    super();
    this.room = room;
    this.id = connectionId;
    this.info = { connectionId, createdAt: 1, data: `data of ${connectionId}` };
  }

  get media() {
    return this.#media ??= new SFUConnections(/** @type {any} */ (this), { rtc: fakeRtc, clock: this.room.clock });
  }

  async connect() {}

  leave() {}

  /** @param {string} type @param {any} [members] @returns {Promise<any>} */
  request(type, members = {}) {
    const message = JSON.parse(JSON.stringify({ type, ...members }));
    this.asked.push(message);
    return new Promise((resolve, reject) => {
      this.room.travel(() => {
        try {
          const answer = this.room.handle(this, message) ?? { type: 'ok' };
          this.tell(answer, () => resolve(answer));
        } catch (error) {
          this.tell({ type: 'error' }, () => reject(error));
        }
      });
    });
  }

  /** @param {any} message @param {() => void} [first] */
  tell(message, first) {
    const sent = JSON.parse(JSON.stringify(message));
    this.room.travel(() => {
      first?.();
      if (sent.type === 'ok' || sent.type === 'error') return;
      this.emit('message', sent);
      this.emit(`message:${sent.type}`, sent);
    });
  }

  /** @param {string} type @returns {any[]} */
  askedFor(type) {
    return this.asked.filter((message) => message.type === type);
  }
}
