// A server with rooms, behind objects that look like `Client`. It implements the part of protocol §15 that the SDK sees. Clients
// can lose their connection, resume it, or get another one; the server can restart.
import { ConfabError } from '../../lib/errors.js';
import { FakeRoom } from './fake-room.mjs';

/** @param {string} code @param {Partial<import('../../lib/errors.js').ErrorMembers>} [members] */
export const refusal = (code, members) => new ConfabError({ code, message: `No: ${code}.`, ...members });

const moderates = (/** @type {any} */ person) => person.role !== 'guest';

/** @typedef {{name: string, roomId: string, sessionId: string, options: any, password: string, people: any[], chat: any[], waiting: any[], banned: Set<string>}} Place */

export class MeetingServer extends FakeRoom {
  /** @type {string[]} names of files that were announced */
  fileNames = [];
  /** @type {Map<string, Place>} */
  rooms = new Map();
  mediaMode = 'routed';
  time = 1_790_000_000_000;
  /** @type {(message: any, client: any) => ConfabError | null} refuses some requests */
  refuses = () => null;

  /** @param {string} device @returns {any} */
  client(device) {
    const client = super.client(device);
    Object.assign(client, { device, epoch: 0, isUp: true, welcome: { connectionId: device }, pending: new Set(), inbox: [], outbox: [] });
    client.request = (/** @type {string} */ type, /** @type {any} */ members = {}) => this.ask(client, { type, ...members });
    client.tell = (/** @type {any} */ message, /** @type {(() => void) | undefined} */ first) => this.deliver(client, message, first);
    return client;
  }

  /** @param {any} client @param {any} raw */
  ask(client, raw) {
    const message = JSON.parse(JSON.stringify(raw));
    if (client.state === 'closed') return Promise.reject(refusal('left'));
    client.asked.push(message);
    return new Promise((resolve, reject) => {
      const pending = { resolve, reject };
      client.pending.add(pending);
      const { epoch } = client;
      const arrive = () => this.travel(() => {
        if (client.epoch === epoch) this.answer(client, message, pending);
      });
      if (client.isUp) arrive();
      else client.outbox.push(arrive);
    });
  }

  /** @param {any} client @param {any} message @param {any} pending */
  answer(client, message, pending) {
    const settle = (/** @type {() => void} */ run) => () => {
      client.pending.delete(pending);
      run();
    };
    try {
      const refused = this.refuses(message, client);
      if (refused) throw refused;
      const answer = this.handle(client, message) ?? { type: 'ok' };
      client.tell(answer, settle(() => pending.resolve(answer)));
    } catch (error) {
      client.tell({ type: 'error' }, settle(() => pending.reject(error)));
    }
  }

  /** @param {any} client @param {any} message @param {(() => void) | undefined} first */
  deliver(client, message, first) {
    const sent = JSON.parse(JSON.stringify(message));
    const { epoch } = client;
    const arrive = () => this.travel(() => {
      if (client.epoch !== epoch) return;
      first?.();
      if (sent.type === 'ok' || sent.type === 'error') return;
      client.emit('message', sent);
      client.emit(`message:${sent.type}`, sent);
    });
    if (client.isUp) arrive();
    else client.inbox.push(arrive);
  }

  // ---- Connections

  /**
   * The network of a client breaks.
   * @param {any} client
   */
  drop(client) {
    client.isUp = false;
    client.state = 'reconnecting';
    client.emit('reconnecting');
    this.presence(client, 'reconnecting');
  }

  /** @param {any} client */
  resume(client) {
    client.isUp = true;
    client.state = 'connected';
    client.emit('connected', { resumed: true });
    for (const run of [...client.outbox.splice(0), ...client.inbox.splice(0)]) run();
    this.presence(client, 'connected');
  }

  /**
   * The server has given up a client, which notices it.
   * @param {any} client
   */
  expire(client) {
    this.forget(client);
    client.epoch += 1;
    client.inbox.length = 0;
    client.outbox.length = 0;
    for (const { reject } of [...client.pending]) reject(refusal('connection_restarted', { retryable: true }));
    client.pending.clear();
    client.state = 'reconnecting';
    client.isUp = false;
    client.emit('expired');
  }

  /** @param {any} client */
  reconnect(client) {
    client.id = `${client.device}.${client.epoch}`;
    client.info = { ...client.info, connectionId: client.id };
    client.welcome = { connectionId: client.id };
    client.isUp = true;
    client.state = 'connected';
    client.sides = {};
    client.slots.clear();
    client.emit('connected', { resumed: false });
    for (const run of client.outbox.splice(0)) run();
    client.emit('restarted', { state: {} });
  }

  restart() {
    this.rooms.clear();
    this.sessions.clear();
    for (const client of this.clients) this.expire(client);
  }

  /** @param {any} client */
  forget(client) {
    const place = this.placeOf(client);
    if (place) this.takeOut(place, client, 'networkDisconnected');
    for (const room of this.rooms.values()) room.waiting = room.waiting.filter((one) => one.client !== client);
  }

  /** @param {any} client @param {string} state */
  presence(client, state) {
    const person = this.personOf(client);
    if (person) this.change(client, { state });
  }

  // ---- Rooms

  /** @param {any} client @returns {Place | undefined} */
  placeOf(client) {
    return [...this.rooms.values()].find(({ people }) => people.some((one) => one.client === client));
  }

  /** @param {any} client */
  personOf(client) {
    return this.placeOf(client)?.people.find((one) => one.client === client);
  }

  /** @param {Place} place @param {any} message @param {any} [except] */
  tellAll(place, message, except) {
    for (const { client } of place.people) if (client !== except) client.tell(message);
  }

  /** @param {any} person */
  seen({ client: _client, ...person }) {
    return person;
  }

  /** @param {any} client @param {any} changes */
  change(client, changes) {
    const place = /** @type {Place} */ (this.placeOf(client));
    const person = Object.assign(this.personOf(client), changes);
    this.tellAll(place, { type: 'room.person', ...this.seen(person) });
  }

  'room.join'(/** @type {any} */ from, /** @type {any} */ { name = 'abc-defg-hij', roomId, displayName, password = '', options = {}, routedOnly }) {
    if (this.placeOf(from)) throw refusal('already_joined');
    const place = this.rooms.get(name.toLowerCase()) ?? this.open(name, options, roomId);
    if (roomId && place.roomId !== roomId) throw refusal('room_other');
    if (place.banned.has(from.device)) throw refusal('room_banned');
    if (place.options.locked) throw refusal('room_locked', { retryable: true });
    if (place.password !== password && place.people.length > 0) throw refusal('room_password', { retryable: true });
    if (place.people.length >= place.options.capacity) throw refusal('room_full', { retryable: true });
    if (routedOnly && place.options.media === 'mesh') throw refusal('room_mesh');
    const person = { client: from, connectionId: from.id, displayName: displayName || 'Quiet Fox', role: 'guest', state: 'connected', since: this.time += 1 };
    if (!place.options.lobby || place.people.length === 0) return this.enter(place, person);
    place.waiting.push(person);
    this.tellKnock(place, person, true);
    return { type: 'room.waiting', re: 1, name: place.name };
  }

  /** @param {string} name @param {any} options @param {string} [formerId] @returns {Place} */
  open(name, { password = '', ...options }, formerId = undefined) {
    const defaults = { media: 'routed', capacity: 25, locked: false, lobby: false, password: password !== '', chat: true, share: 'all', persistent: false };
    /** @type {Place} */
    const place = {
      name, roomId: formerId ?? `room-${this.made += 1}`, sessionId: `2_${name}-${this.made += 1}`, options: { ...defaults, ...options }, password, people: [], chat: [], waiting: [], banned: new Set(),
    };
    this.rooms.set(name.toLowerCase(), place);
    return place;
  }

  /** @param {Place} place @param {any} person */
  enter(place, person) {
    if (place.people.length === 0) person.role = 'host';
    place.people.push(person);
    this.tellAll(place, { type: 'room.person', ...this.seen(person) }, person.client);
    if (moderates(person)) queueMicrotask(() => { for (const one of place.waiting) this.tellKnock(place, one, true); });
    return {
      type: 'room.joined', name: place.name, roomId: place.roomId, sessionId: place.sessionId, token: 'good', role: person.role, options: place.options,
      people: place.people.map((one) => this.seen(one)), chat: place.chat, files: { path: '/v1/rooms/r/files', key: 'k1', maxSize: 1000 },
    };
  }

  /** @param {Place} place @param {any} person @param {boolean} waiting */
  tellKnock(place, { connectionId, displayName }, waiting) {
    for (const one of place.people) if (moderates(one)) one.client.tell({ type: 'room.knock', connectionId, displayName, waiting });
  }

  /** @param {Place} place @param {any} client @param {string} reason */
  takeOut(place, client, reason) {
    const person = this.personOf(client);
    place.people = place.people.filter((one) => one !== person);
    if (this.session(place.sessionId).members.includes(client)) this['session.leave'](client, { sessionId: place.sessionId }, reason);
    this.tellAll(place, { type: 'room.person', ...this.seen(person), state: 'left' });
    if (place.people.length > 0 && !place.people.some(({ role }) => role === 'host')) this.change(place.people[0].client, { role: 'host' });
  }

  'room.leave'(/** @type {any} */ from) {
    const place = this.placeOf(from);
    if (place) return this.takeOut(place, from, 'clientDisconnected');
    for (const room of this.rooms.values()) {
      const person = room.waiting.find((one) => one.client === from);
      room.waiting = room.waiting.filter((one) => one !== person);
      if (person) return this.tellKnock(room, person, false);
    }
    throw refusal('not_joined');
  }

  /** @param {any} from @param {string} connectionId */
  takeWaiting(from, connectionId) {
    const place = /** @type {Place} */ (this.placeOf(from));
    const person = place.waiting.find((one) => one.connectionId === connectionId);
    if (!person) throw refusal('not_found');
    place.waiting = place.waiting.filter((one) => one !== person);
    this.tellKnock(place, person, false);
    return { place, person };
  }

  'room.admit'(/** @type {any} */ from, /** @type {any} */ { connectionId }) {
    const { place, person } = this.takeWaiting(from, connectionId);
    person.client.tell(this.enter(place, person));
  }

  'room.deny'(/** @type {any} */ from, /** @type {any} */ { connectionId }) {
    const { place, person } = this.takeWaiting(from, connectionId);
    person.client.tell({ type: 'room.refused', name: place.name, code: 'room_refused', message: 'A host did not let you in.' });
  }

  'room.set'(/** @type {any} */ from, /** @type {any} */ { options }) {
    const place = /** @type {Place} */ (this.placeOf(from));
    const { password, ...rest } = options;
    Object.assign(place.options, rest);
    if (password !== undefined) {
      place.password = password;
      place.options.password = password !== '';
    }
    this.tellAll(place, { type: 'room.changed', options: place.options });
  }

  'room.role'(/** @type {any} */ _from, /** @type {any} */ { connectionId, role }) {
    this.change(this.clients.find(({ id }) => id === connectionId), { role });
  }

  'room.mute'(/** @type {any} */ from, /** @type {any} */ { connectionId }) {
    this.eachStream(from, connectionId, (streamId, owner, sessionId) => owner.tell({ type: 'session.muted', sessionId, active: true, streamId }));
  }

  'room.stopShare'(/** @type {any} */ from, /** @type {any} */ { connectionId }) {
    this.eachStream(from, connectionId, (streamId, _owner, sessionId, info) => {
      if (info.videoType === 'screen') this.remove(sessionId, streamId, 'forceUnpublished');
    });
  }

  /** @param {any} from @param {string | undefined} connectionId @param {(streamId: string, owner: any, sessionId: string, info: any) => void} visit */
  eachStream(from, connectionId, visit) {
    const { sessionId } = /** @type {Place} */ (this.placeOf(from));
    for (const [streamId, { info }] of this.session(sessionId).streams) {
      const isMeant = connectionId === undefined ? info.connectionId !== from.id : info.connectionId === connectionId;
      if (isMeant) visit(streamId, this.owner(sessionId, info), sessionId, info);
    }
  }

  'room.remove'(/** @type {any} */ from, /** @type {any} */ { connectionId, ban = false }) {
    const place = /** @type {Place} */ (this.placeOf(from));
    /** @type {any} */
    const target = this.clients.find(({ id }) => id === connectionId);
    if (ban) place.banned.add(target.device);
    target.tell({ type: 'session.left', sessionId: place.sessionId, reason: 'forceDisconnected' });
    this.takeOut(place, target, 'forceDisconnected');
    target.tell({ type: 'room.ended', name: place.name, reason: ban ? 'banned' : 'removed' });
  }

  'room.say'(/** @type {any} */ from, /** @type {any} */ { text }) {
    const place = /** @type {Place} */ (this.placeOf(from));
    const { connectionId, displayName } = this.personOf(from);
    const line = { connectionId, displayName, text, at: this.time += 1 };
    place.chat.push(line);
    this.tellAll(place, { type: 'room.said', ...line });
  }

  'room.file'(/** @type {any} */ _from, /** @type {any} */ { name, size }) {
    if (size > 1000) throw refusal('message_too_large');
    this.fileNames.push(name);
    return { type: 'room.upload', re: 1, fileId: 'f1', path: '/v1/rooms/r/files/f1', secret: 's1' };
  }

  'room.removeFile'(/** @type {any} */ from, /** @type {any} */ { fileId }) {
    this.tellAll(/** @type {Place} */ (this.placeOf(from)), { type: 'room.fileRemoved', fileId });
  }

  'room.hand'(/** @type {any} */ from, /** @type {any} */ { raised }) {
    this.change(from, { handAt: raised ? this.time += 1 : undefined });
  }

  'room.react'(/** @type {any} */ from, /** @type {any} */ { reaction }) {
    this.tellAll(/** @type {Place} */ (this.placeOf(from)), { type: 'room.reacted', connectionId: from.id, reaction });
  }
}
