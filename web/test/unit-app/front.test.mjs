// The script of the front page, in a page that has little more than its address.
import assert from 'node:assert/strict';
import test, { afterEach } from 'node:test';

/** What a test has to put in place of the browser's. */
const names = ['document', 'location', 'navigator', 'HTMLElement', 'HTMLButtonElement'];
const natives = new Map(names.map((name) => [name, Object.getOwnPropertyDescriptor(globalThis, name)]));
let opened = 0;

afterEach(() => {
  for (const [name, native] of natives) {
    if (native) Object.defineProperty(globalThis, name, native);
    else delete globalThis[name];
  }
});

/** Opens the front page at an address; returns where it leads at once, or null. */
async function open(address, ways = 'strangers nearby rooms') {
  const { search, hash } = new URL(address, 'https://confab.example');
  let led = null;
  class Box {
    hidden = true;
  }
  class Button extends Box {
    addEventListener() {}
  }
  const elements = { 'guest-note': new Box(), 'new-room': new Button() };
  const note = elements['guest-note'];
  const fakes = {
    document: { documentElement: { lang: '', dataset: { ways } }, title: '', querySelectorAll: () => [], getElementById: (id) => elements[id] ?? null },
    location: { search, hash, replace: (to) => { led = to; } }, navigator: { languages: ['en'] }, HTMLElement: Box, HTMLButtonElement: Button,
  };
  for (const [name, value] of Object.entries(fakes)) Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
  // The query makes node run the script again.
  await import(`../../app/front/main.js?${opened += 1}`);
  assert.equal(note.hidden, !new URLSearchParams(search).has('guest'), 'guests are told so');
  return led;
}

test('links to people, devices and calls of the time when people nearby were at / lead on to them, with the guest', async () => {
  for (const name of ['person', 'link', 'call']) assert.equal(await open(`/#${name}=x1`), `/nearby#${name}=x1`);
  assert.equal(await open('/?guest=1#person=x1'), '/nearby?guest=1#person=x1');
});

test('no other address leads on, and none where people nearby are off', async () => {
  for (const address of ['/', '/?guest=1', '/#', '/#persons=x1', '/?person=x1']) assert.equal(await open(address), null, address);
  assert.equal(await open('/#person=x1', 'strangers rooms'), null);
});
