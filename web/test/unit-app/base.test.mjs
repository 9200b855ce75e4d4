// Where the server is, as the pages and the SDK find it out.
import assert from 'node:assert/strict';
import test from 'node:test';
import { at, basePathIn } from '../../app/shared/base.js';
import { defaultURL, httpURL } from '../../lib/signaling/socket.js';

test('pages find the path below which the server is by the address of a module', () => {
  const cases = {
    'https://chat.example.org/app/shared/base.js': '', 'https://example.org/video/app/shared/base.js': '/video',
    'http://[::1]:8080/a/b.c/app/shared/base.js?1': '/a/b.c', 'https://example.org/bundle.js': '', 'file:///web/app/shared/base.js': '',
  };
  for (const [module, expected] of Object.entries(cases)) assert.equal(basePathIn(module), expected, module);
  assert.equal(at('/rooms?guest=1'), '/rooms?guest=1');
});

test('the SDK connects to the server that it was loaded from, also below a path', () => {
  const cases = {
    'https://chat.example.org/lib/signaling/socket.js': 'wss://chat.example.org/v1/socket',
    'https://example.org/video/lib/signaling/socket.js?v=3#x': 'wss://example.org/video/v1/socket',
    'http://[::1]:8080/lib/signaling/socket.js': 'ws://[::1]:8080/v1/socket',
    'http://127.0.0.1:8080/static/js/bundle.js': 'ws://127.0.0.1:8080/v1/socket',
  };
  for (const [module, expected] of Object.entries(cases)) assert.equal(defaultURL(module), expected, module);
  assert.throws(() => defaultURL('file:///web/lib/signaling/socket.js'), { code: 'no_url' });
});

test('paths in messages count from the server’s URL, and lead to no other host', () => {
  const cases = [
    ['wss://chat.example.org/v1/socket', '/v1/rooms/Tea%20at%205/files', 'https://chat.example.org/v1/rooms/Tea%20at%205/files'],
    ['wss://example.org/video/v1/socket', '/v1/person', 'https://example.org/video/v1/person'],
    ['ws://[::1]:8080/v1/socket', '/v1/person', 'http://[::1]:8080/v1/person'],
    ['wss://chat.example.org/v1/socket?a#b', '/v1/person', 'https://chat.example.org/v1/person'],
    ['wss://example.org/elsewhere', '/v1/person', 'https://example.org/v1/person'],
    ['wss://chat.example.org/v1/socket', '//evil.example/x', 'https://chat.example.org//evil.example/x'],
  ];
  for (const [socket, path, expected] of cases) assert.equal(httpURL(socket, path), expected);
});
