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

/** Opens the front page at an address; returns where it leads at once, or null, and where it leads after “New room” is pressed. */
async function open(address, features = 'strangers nearby rooms') {
  const { search, hash } = new URL(address, 'https://confab.example');
  let [led, went] = [null, null];
  let press;
  class Box {
    hidden = true;
  }
  class Button extends Box {
    addEventListener(type, listener) {
      assert.equal(type, 'click');
      press = listener;
    }
  }
  const elements = { 'guest-note': new Box(), 'new-room': new Button() };
  const note = elements['guest-note'];
  const fakes = {
    document: { documentElement: { lang: '', dataset: { features } }, title: '', querySelectorAll: () => [], getElementById: (id) => elements[id] ?? null },
    location: { search, hash, replace: (to) => { led = to; }, assign: (to) => { went = to; } }, navigator: { languages: ['en'] }, HTMLElement: Box, HTMLButtonElement: Button,
  };
  for (const [name, value] of Object.entries(fakes)) Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
  // The query makes node run the script again.
  await import(`../../app/front/main.js?${opened += 1}`);
  assert.equal(note.hidden, !new URLSearchParams(search).has('guest'), 'guests are notified');
  const atOnce = led;
  press();
  return { led: atOnce, went };
}

test('links to people, devices and calls of the time when people nearby were at / lead on to them, with the guest', async () => {
  for (const name of ['person', 'link', 'call']) assert.equal((await open(`/#${name}=x1`)).led, `/nearby#${name}=x1`);
  assert.equal((await open('/?guest=1#person=x1')).led, '/nearby?guest=1#person=x1');
});

test('no other address leads on, and none where people nearby are off', async () => {
  for (const address of ['/', '/?guest=1', '/#', '/#persons=x1', '/?person=x1']) assert.equal((await open(address)).led, null, address);
  assert.equal((await open('/#person=x1', 'strangers rooms')).led, null);
});

test('“New room” leads to a room with a random name, in which a guest stays a guest', async () => {
  const [first, second, guest] = [await open('/'), await open('/'), await open('/?guest=1')].map(({ went }) => went);
  assert.match(first, /^[/]room[/][a-z]{3}-[a-z]{4}-[a-z]{3}$/);
  assert.notEqual(first, second);
  assert.match(guest, /^[/]room[/][a-z]{3}-[a-z]{4}-[a-z]{3}[?]guest=1$/);
});
