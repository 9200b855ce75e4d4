// The server SDKs of OpenTok and its successor, unchanged, call every method that they have. Those that act on a session act on
// two connected pages. The Python side is `../peers/sdk_caller.py`.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import net from 'node:net';
import path from 'node:path';
import test from 'node:test';
import tls from 'node:tls';
import { promisify } from 'node:util';
import { sharedBrowsers } from './browsers.mjs';
import { Child, removeFolder, temporaryFolder } from './process.mjs';
import { repository } from './server.mjs';
import { serve } from './stranger.mjs';
import { NotYet, until } from './wait.mjs';

const { chromium } = sharedBrowsers();
const run = promisify(execFile);
const routed = { media_mode: { enum: 'opentok.MediaModes.routed' } };
const as = (role) => ({ role: { enum: `opentok.Roles.${role}` } });

/** A Python process with the SDKs. It calls one method at a time. */
class Caller {
  #lines = 0;

  static async start(t, env = {}) {
    const { stdout } = await run(path.join(repository, 'scripts', 'browser-setup'), ['--opentok']);
    const script = path.join(repository, 'web', 'test', 'peers', 'sdk_caller.py');
    const caller = new Caller();
    caller.child = new Child(stdout.trim(), ['-B', script], { input: true, env });
    t.after(() => caller.child.kill());
    return caller;
  }

  async do(command) {
    this.child.write(JSON.stringify(command));
    this.#lines += 1;
    const line = await until(`Python answers ${command.method ?? command.do}`, () => {
      if (this.child.ended) throw new Error(`Python ended:\n${this.child.tail()}`);
      const answers = this.child.log.filter((text) => text.startsWith('{"event"'));
      if (answers.length < this.#lines) throw new NotYet('it has not');
      return answers[this.#lines - 1];
    }, { why: () => this.child.tail() });
    return JSON.parse(line);
  }

  /** Calls a method and returns its event: what it returned or raised. */
  call(client, method, args = [], more = {}) {
    return this.do({ do: 'call', client, method, args, more });
  }

  /** Calls a method that must return, and returns its value and the status. */
  async returns(client, method, ...rest) {
    const { event, args } = await this.call(client, method, ...rest);
    assert.equal(event, 'returned', `${method}: ${JSON.stringify(args)}`);
    return args[0];
  }

  /** Calls a method that must raise this exception after a response with this status, and returns the response's body. */
  async raises(client, [method, ...rest], exception, status) {
    const { event, args } = await this.call(client, method, ...rest);
    assert.equal(event, 'raised', `${method} returned ${JSON.stringify(args)}`);
    const [classes, message, response] = args;
    assert.equal(classes[0], exception, `${method}: ${classes.join(', ')}: ${message} ${JSON.stringify(response)}`);
    assert.equal(response?.status, status, `${method}: ${JSON.stringify(response)}`);
    assert.equal(response.type, 'application/json', method);
    const body = JSON.parse(response.body);
    assert.equal(typeof body.code, 'string', method);
    assert.equal(typeof body.message, 'string', method);
    return { ...body, raised: message };
  }
}

/** The API key and secret of the server's main project. */
async function project(server) {
  const text = await server.command('project', 'show');
  return { key: /API key: +(\S+)/.exec(text)[1], secret: /API secret: +(\S+)/.exec(text)[1] };
}

/** A server, and an SDK with the credentials of its project. */
async function start(t, env = {}) {
  const server = await serve(t);
  const credentials = await project(server);
  const caller = await Caller.start(t, env);
  await caller.do({ do: 'opentok', name: 'sdk', url: server.url, ...credentials });
  return { server, caller, ...credentials };
}

/** Runs in a page: joins a session, publishes, and keeps the events that a test asks for. */
async function enter(key, id, token, publishes) {
  const { OT } = await import('/lib/index.js');
  const seen = { signals: [], muted: 0, sessionMuted: [], streams: {}, ended: null };
  const session = OT.initSession(key, id);
  session.on('signal', ({ type, data, from }) => seen.signals.push({ type, data, from }));
  session.on('muteForced', ({ active }) => seen.sessionMuted.push(active));
  session.on('sessionDisconnected', ({ reason }) => { seen.ended = reason; });
  session.on('streamCreated', ({ stream }) => { seen.streams[stream.streamId] = stream; });
  await new Promise((resolve, reject) => session.connect(token, (error) => (error ? reject(error) : resolve())));
  window.seen = seen;
  window.heard = () => Object.fromEntries(Object.entries(seen.streams).map(([stream, { hasAudio }]) => [stream, hasAudio]));
  if (!publishes) return { connection: session.connection.connectionId };
  const publisher = OT.initPublisher(document.body.appendChild(document.createElement('div')), { name: publishes });
  publisher.on('muteForced', () => { seen.muted += 1; });
  await new Promise((resolve, reject) => session.publish(publisher, (error) => (error ? reject(error) : resolve())));
  return { connection: session.connection.connectionId, stream: publisher.stream.streamId };
}

async function join(t, server, key, session, token, { color, publishes }) {
  const page = await (await chromium()).newPage({ color });
  t.after(() => page.close());
  await page.goto(`${server.url}/try`);
  return { page, ...await page.evaluate(enter, key, session, token, publishes) };
}

const has = (page, description, expression, ...args) => page.waitFor(description, expression, { args, why: 'window.seen' });

// What each method does in a session in which nobody is. The members are the arguments, the exception and the status, and a
// word that the server's message must contain. Without an exception, the method returns this value.
const id = '00000000-0000-4000-8000-000000000000';
const output = { outputs: { hls: {} } };
const methods = (session, token) => [
  ['start_archive', [session], 'NotFoundError', 404, 'Nobody'],
  ['stop_archive', [id], 'NotFoundError', 404, 'archive'],
  ['get_archive', [id], 'NotFoundError', 404, 'archive'],
  ['delete_archive', [id], 'NotFoundError', 404, 'archive'],
  ['set_archive_layout', [id, 'pip'], 'RequestError', 404, 'archive'],
  ['add_archive_stream', [id, id], 'RequestError', 404, ''],
  ['remove_archive_stream', [id, id], 'RequestError', 404, ''],
  ['get_archives', [], { class: 'ArchiveList', count: 0, items: [] }],
  ['list_archives', [1, 5, session], { class: 'ArchiveList', count: 0, items: [] }],
  ['start_broadcast', [session, output], 'RequestError', 501, 'cannot broadcast'],
  ['stop_broadcast', [id], 'RequestError', 404, 'broadcast'],
  ['get_broadcast', [id], 'RequestError', 404, 'broadcast'],
  ['set_broadcast_layout', [id, 'pip'], 'RequestError', 404, 'broadcast'],
  ['add_broadcast_stream', [id, id], 'RequestError', 404, ''],
  ['remove_broadcast_stream', [id, id], 'RequestError', 404, ''],
  ['dial', [session, token, 'sip:someone@example.org'], 'RequestError', 501, 'SIP'],
  ['play_dtmf', [session, null, '12#'], 'OpenTokException', 404, 'SIP'],
  ['play_dtmf', [session, id, '12#'], 'OpenTokException', 404, 'SIP'],
  ['start_render', [session, token, 'https://example.org'], 'RequestError', 400, 'Rendering'],
  ['get_render', [id], 'NotFoundError', 404, 'Rendering'],
  ['stop_render', [id], 'NotFoundError', 404, 'Rendering'],
  ['list_renders', [], { class: 'RenderList', count: 0, items: [] }],
  ['connect_audio_to_websocket', [session, token, { uri: 'wss://example.org' }], 'RequestError', 400, 'audio connector'],
  ['start_captions', [session, token], 'RequestError', 400, 'Captioning'],
  ['stop_captions', [id], 'NotFoundError', 404, 'Captioning'],
  // Nobody is in the session.
  ['list_streams', [session], { class: 'StreamList', count: 0, items: [] }],
  ['get_stream', [session, id], 'RequestError', 404, ''],
  ['set_stream_class_lists', [session, []], 'RequestError', 404, 'Nobody'],
  ['force_disconnect', [session, id], 'ForceDisconnectError', 404, ''],
  ['send_signal', [session, { type: 'a', data: 'b' }], 'RequestError', 404, 'Nobody'],
  ['signal', [session, { type: 'a', data: 'b' }], 'RequestError', 404, 'Nobody'],
  ['mute_all', [session, []], 'OpenTokException', 404, 'Nobody'],
  ['disable_force_mute', [session], 'OpenTokException', 404, 'Nobody'],
  ['mute_stream', [session, id], 'OpenTokException', 404, ''],
];

// The same for the newer SDK, without the lists.
const newerMethods = (session, model) => [
  ['start_archive', [model('CreateArchiveRequest', { session_id: session })], 'HttpRequestError', 409, ''],
  ['get_archive', [id], 'NotFoundError', 404, 'This project has no archive'],
  ['stop_archive', [id], 'NotFoundError', 404, 'This project has no archive'],
  ['delete_archive', [id], 'NotFoundError', 404, 'This project has no archive'],
  ['change_archive_layout', [id, model('ComposedLayout', { type: 'pip' })], 'NotFoundError', 404, 'This project has no archive'],
  ['add_stream_to_archive', [id, model('AddStreamRequest', { stream_id: id })], 'NotFoundError', 404, ''],
  ['remove_stream_from_archive', [id, id], 'NotFoundError', 404, ''],
  ['start_broadcast', [model('CreateBroadcastRequest', {
    session_id: session, outputs: model('BroadcastOutputSettings', { hls: model('BroadcastHls', {}) }),
  })], 'HttpRequestError', 501, 'This server cannot broadcast'],
  ['get_broadcast', [id], 'NotFoundError', 404, 'This project has no broadcast'],
  ['stop_broadcast', [id], 'NotFoundError', 404, 'This project has no broadcast'],
  ['change_broadcast_layout', [id, model('ComposedLayout', { type: 'pip' })], 'NotFoundError', 404, 'This project has no broadcast'],
  ['add_stream_to_broadcast', [id, model('AddStreamRequest', { stream_id: id })], 'NotFoundError', 404, ''],
  ['remove_stream_from_broadcast', [id, id], 'NotFoundError', 404, ''],
  ['initiate_sip_call', [model('InitiateSipRequest', {
    session_id: session, token: 'a', sip: model('SipOptions', { uri: 'sip:someone@example.org' }),
  })], 'HttpRequestError', 501, 'SIP'],
  ['play_dtmf', [session, '12#'], 'NotFoundError', 404, 'SIP'],
  ['start_captions', [model('CaptionsOptions', { session_id: session, token: 'a' })], 'HttpRequestError', 400, 'Captioning'],
  ['stop_captions', [model('CaptionsData', { captions_id: id })], 'NotFoundError', 404, 'Captioning'],
  ['start_audio_connector', [model('AudioConnectorOptions', {
    session_id: session, token: 'a', websocket: model('AudioConnectorWebSocket', { uri: 'wss://example.org' }),
  })], 'HttpRequestError', 400, 'The audio connector'],
  ['start_experience_composer', [model('ExperienceComposerOptions', {
    session_id: session, token: 'a', url: 'https://example.org',
  })], 'HttpRequestError', 400, 'Rendering'],
  ['get_experience_composer', [id], 'NotFoundError', 404, 'Rendering'],
  ['stop_experience_composer', [id], 'NotFoundError', 404, 'Rendering'],
];

/** Methods that send no request. */
const local = [
  'generate_token', 'append_to_user_agent', 'get_headers', 'headers', 'get_json_headers', 'json_headers',
  'validate_websocket_options',
];

/** The exceptions for bad credentials that are not AuthError. */
const otherwiseRefused = {
  create_session: 'RequestError', send_signal: 'RequestError', signal: 'RequestError', add_archive_stream: 'RequestError',
  remove_archive_stream: 'RequestError', add_broadcast_stream: 'RequestError', remove_broadcast_stream: 'RequestError',
  mute_all: 'OpenTokException', disable_force_mute: 'OpenTokException', mute_stream: 'OpenTokException',
  play_dtmf: 'OpenTokException',
};

test('every method of OpenTok\'s SDK for Python returns a value or raises the documented exception', async (t) => {
  const { server, caller, key } = await start(t);
  const { session_id: session } = await caller.returns('sdk', 'create_session', [], routed);
  const token = await caller.returns('sdk', 'generate_token', [session]);
  const rows = methods(session, token);

  const { args: [known] } = await caller.do({ do: 'methods', client: 'sdk' });
  const covered = ['create_session', ...local, ...rows.map(([method]) => method)];
  assert.deepEqual([...new Set(covered)].sort().filter((method) => !known.includes(method)), []);
  assert.deepEqual(known.filter((method) => !covered.includes(method)), []);

  for (const [method, args, exception, status, word] of rows) {
    if (status === undefined) {
      assert.deepEqual(await caller.returns('sdk', method, args), exception, method);
      continue;
    }
    const { message } = await caller.raises('sdk', [method, args], exception, status);
    assert.ok(message.includes(word), `${method}: ${message}`);
  }

  const always = { archive_mode: { enum: 'opentok.ArchiveModes.always' } };
  const recorded = await caller.returns('sdk', 'create_session', [], { ...routed, ...always });
  assert.notEqual(recorded.session_id, session);
  const { message } = await caller.raises('sdk', ['create_session', [], { ...routed, e2ee: true }], 'OpenTokException', 400);
  assert.ok(message.includes('End-to-end encryption'), message);
  const relayed = await caller.returns('sdk', 'create_session', [], { location: '192.0.2.1' });
  assert.notEqual(relayed.session_id, session);

  await caller.do({ do: 'opentok', name: 'stranger', url: server.url, key, secret: 'x'.repeat(40) });
  for (const [method, args] of [['create_session', []], ...rows]) {
    await caller.raises('stranger', [method, args], otherwiseRefused[method] ?? 'AuthError', 403);
  }
});

test('OpenTok\'s SDK for Python signals to two pages, lists and mutes their streams, and disconnects one', async (t) => {
  const { server, caller, key } = await start(t);
  const { session_id: session } = await caller.returns('sdk', 'create_session', [], routed);
  const token = (more) => caller.returns('sdk', 'generate_token', [session], more);
  const ada = await join(t, server, key, session, await token({ ...as('moderator'), data: 'name=Ada' }), {
    color: 'red', publishes: 'Ada\'s camera',
  });
  // The older kind of token.
  const bob = await join(t, server, key, session, await token({
    ...as('publisher'), use_jwt: false, data: 'name=Bob', initial_layout_class_list: ['small', 'left'],
  }), { color: 'blue', publishes: 'Bob\'s camera' });
  await has(ada.page, 'Ada sees the stream of Bob', (stream) => window.heard()[stream] === true, bob.stream);

  // Streams and layout classes
  const adaStream = { class: 'Stream', id: ada.stream, videoType: 'camera', name: 'Ada\'s camera', layoutClassList: [] };
  const bobStream = { ...adaStream, id: bob.stream, name: 'Bob\'s camera', layoutClassList: ['small', 'left'] };
  const streams = await caller.returns('sdk', 'list_streams', [session]);
  assert.deepEqual({ ...streams, items: streams.items.sort((a, b) => a.name.localeCompare(b.name)) },
    { class: 'StreamList', count: 2, items: [adaStream, bobStream] });
  const layout = [{ id: ada.stream, layoutClassList: ['full', 'focus'] }];
  assert.equal(await caller.returns('sdk', 'set_stream_class_lists', [session, layout]), null);
  assert.deepEqual(await caller.returns('sdk', 'get_stream', [session, ada.stream]), { ...adaStream, layoutClassList: ['full', 'focus'] });
  assert.deepEqual(await caller.returns('sdk', 'get_stream', [session, bob.stream]), bobStream);
  await caller.raises('sdk', ['get_stream', [session, id]], 'RequestError', 404);
  await caller.raises('sdk', ['set_stream_class_lists', [session, [{ id: ada.stream, layoutClassList: 'full' }]]], 'SetStreamClassError', 400);

  // Signals
  assert.equal(await caller.returns('sdk', 'send_signal', [session, { type: 'news', data: 'to all' }]), null);
  assert.equal(await caller.returns('sdk', 'send_signal', [session, { type: 'news', data: 'to Bob' }, bob.connection]), null);
  assert.equal(await caller.returns('sdk', 'signal', [session, { data: 'last' }]), null);
  const news = (data) => ({ type: 'signal:news', data, from: null });
  const last = { type: 'signal', data: 'last', from: null };
  for (const [{ page }, expected] of [[ada, [news('to all'), last]], [bob, [news('to all'), news('to Bob'), last]]]) {
    await has(page, 'the last signal arrives', 'window.seen.signals.at(-1)?.data === "last"');
    assert.deepEqual(await page.evaluate('window.seen.signals'), expected);
  }
  await caller.raises('sdk', ['send_signal', [session, { type: 'news', data: 'x'.repeat(8193) }]], 'RequestError', 413);
  await caller.raises('sdk', ['send_signal', [session, { type: 'not valid', data: '' }]], 'RequestError', 400);
  await caller.raises('sdk', ['send_signal', [session, { data: '' }, id]], 'RequestError', 404);

  // Mutes
  const done = { class: 'Response', status: 200 };
  assert.deepEqual(await caller.returns('sdk', 'mute_stream', [session, bob.stream]), done);
  await has(bob.page, 'Bob is muted', 'window.seen.muted === 1');
  await has(ada.page, 'Ada no longer hears Bob', (stream) => window.heard()[stream] === false, bob.stream);
  assert.deepEqual(await caller.returns('sdk', 'mute_all', [session, [bob.stream]]), done);
  await has(ada.page, 'Ada is muted', 'window.seen.muted === 1');
  assert.deepEqual(await caller.returns('sdk', 'disable_force_mute', [session]), done);
  for (const { page } of [ada, bob]) await has(page, 'the mute ends', 'window.seen.sessionMuted.join() === "true,false"');
  assert.equal(await bob.page.evaluate('window.seen.muted'), 1);
  await caller.raises('sdk', ['mute_stream', [session, id]], 'OpenTokException', 404);

  // Disconnecting
  assert.equal(await caller.returns('sdk', 'force_disconnect', [session, bob.connection]), null);
  await has(bob.page, 'Bob is disconnected', 'window.seen.ended === "forceDisconnected"');
  assert.equal(await ada.page.evaluate('window.seen.ended'), null);
  await caller.raises('sdk', ['force_disconnect', [session, bob.connection]], 'ForceDisconnectError', 404);
  assert.deepEqual((await caller.returns('sdk', 'list_streams', [session])).items.map((stream) => stream.id), [ada.stream]);
});

/** A proxy that handles HTTPS with a certificate of this test, because the newer SDK uses nothing else. */
async function secure(t, port) {
  const folder = await temporaryFolder('certificate');
  t.after(() => removeFolder(folder));
  const file = (name) => path.join(folder, name);
  await run('openssl', [
    'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2', '-subj', '/CN=localhost',
    '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1', '-keyout', file('tls.key'), '-out', file('tls.pem'),
  ]);
  await run('openssl', ['genpkey', '-algorithm', 'RSA', '-pkeyopt', 'rsa_keygen_bits:2048', '-out', file('app.key')]);
  await run('openssl', ['pkey', '-in', file('app.key'), '-pubout', '-out', file('app.pem')]);
  const proxy = tls.createServer({ key: await readFile(file('tls.key')), cert: await readFile(file('tls.pem')) }, (socket) => {
    const upstream = net.connect(port, '127.0.0.1');
    for (const [from, to] of [[socket, upstream], [upstream, socket]]) from.on('error', () => to.destroy()).pipe(to);
  });
  await new Promise((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  t.after(() => proxy.close());
  return { host: `localhost:${proxy.address().port}`, authority: file('tls.pem'), publicKey: file('app.pem'), key: await readFile(file('app.key'), 'utf8') };
}

test('the SDK that followed OpenTok\'s signs with a private key, and does the same to two pages', async (t) => {
  const server = await serve(t);
  const { host, authority, publicKey, key } = await secure(t, server.port);
  const { key: apiKey } = await project(server);
  const application = '11111111-2222-4333-8444-555555555555';
  await server.command('project', 'set', apiKey, '--application', application, '--public-key', publicKey);
  const caller = await Caller.start(t, { REQUESTS_CA_BUNDLE: authority });
  await caller.do({ do: 'vonage', name: 'video', host, application, key });
  const model = (name, members) => ({ model: `vonage_video.models.${name}`, members });

  // The running server notices the key a moment later.
  const { session_id: session } = await until('the server accepts the key', async () => {
    const { event, args } = await caller.call('video', 'create_session');
    if (event !== 'returned') throw new NotYet(JSON.stringify(args));
    return args[0];
  });
  const token = (members) => caller.returns('video', 'generate_client_token', [model('TokenOptions', { session_id: session, ...members })]);
  const ada = await join(t, server, application, session, await token({ role: 'moderator' }), { color: 'red', publishes: 'Ada' });
  const bob = await join(t, server, application, session, await token({ initial_layout_class_list: ['small', 'left'] }), {
    color: 'blue', publishes: 'Bob',
  });
  const streams = await caller.returns('video', 'list_streams', [session]);
  assert.deepEqual(streams.map(({ name, layout_class_list: classes }) => [name, classes]).sort(), [['Ada', []], ['Bob', ['small', 'left']]]);
  assert.equal((await caller.returns('video', 'get_stream', [session, bob.stream])).video_type, 'camera');
  const layouts = model('StreamLayoutOptions', { items: [model('StreamLayout', { id: bob.stream, layout_class_list: ['full'] })] });
  const changed = await caller.returns('video', 'change_stream_layout', [session, layouts]);
  assert.deepEqual(changed.map(({ id: stream, layout_class_list: classes }) => [stream, classes]), [[bob.stream, ['full']]]);
  await caller.returns('video', 'send_signal', [session, model('SignalData', { type: 'news', data: 'to Bob' }), bob.connection]);
  await has(bob.page, 'the signal arrives', 'window.seen.signals.length === 1');
  assert.deepEqual(await bob.page.evaluate('window.seen.signals'), [{ type: 'signal:news', data: 'to Bob', from: null }]);
  await caller.returns('video', 'mute_stream', [session, bob.stream]);
  await has(bob.page, 'Bob is muted', 'window.seen.muted === 1');
  await caller.returns('video', 'mute_all_streams', [session, [bob.stream]]);
  await has(ada.page, 'Ada is muted', 'window.seen.muted === 1');
  await caller.returns('video', 'disable_mute_all_streams', [session]);
  await has(bob.page, 'the mute ends', 'window.seen.sessionMuted.join() === "true,false"');
  await caller.returns('video', 'disconnect_client', [session, bob.connection]);
  await has(bob.page, 'Bob is disconnected', 'window.seen.ended === "forceDisconnected"');
  await caller.raises('video', ['disconnect_client', [session, bob.connection]], 'NotFoundError', 404);
  assert.deepEqual(await caller.returns('video', 'list_archives'), [[], 0, null]);
  assert.deepEqual(await caller.returns('video', 'list_broadcasts'), [[], 0, null]);
  assert.deepEqual(await caller.returns('video', 'list_experience_composers'), [[], 0, null]);
  for (const [method, args, exception, status, word] of newerMethods(session, model)) {
    const { message } = await caller.raises('video', [method, args], exception, status);
    assert.ok(message.startsWith(word), `${method}: ${message}`);
  }
  await caller.do({ do: 'vonage', name: 'stranger', host, application: application.replaceAll('1', '9'), key });
  await caller.raises('stranger', ['list_streams', [session]], 'ForbiddenError', 403);
});
