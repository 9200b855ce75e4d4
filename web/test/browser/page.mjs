// The operations of tests on a page, for every engine. The engines (chromium.mjs, firefox.mjs) supply the primitives listed at
// the end of `Page`; everything else is here once, so that both behave the same.
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { clickArrived, clickPoint, keepPeers, paintMedia, receivedMedia, source } from './in-page.mjs';
import { NotYet, until } from './wait.mjs';

/** The error if code inside the page threw or the page is between two documents. A wait tries again. */
export class PageError extends NotYet {
  name = 'PageError';
}

/** The number of console lines kept per page. It is enough to explain a failure. */
const keptConsoleLines = 500;

/**
 * @typedef {object} PageOptions
 * @property {string} [label] the page's name in messages; default: the color
 * @property {string} [color] a CSS color; the page's camera then shows this color, and its microphone plays a tone
 * @property {number} [tone] the frequency of that tone in hertz
 * @property {{color: string, tone: number}} [screen] what the user's screen shows and plays when it is shared, if the page has a color
 * @property {string[]} [scripts] source text run in every new document before the page's own
 * @property {Page} [sharing] another page, whose profile the new page shares, like two tabs of one browser
 * @property {number} [width] @property {number} [height] of the window's inside, in CSS pixels
 */

export class Page {
  /** @type {{level: string, text: string}[]} */
  console = [];
  /** Uncaught errors and unhandled rejections. @type {string[]} */
  exceptions = [];
  width;
  height;
  dark = false;
  closed = false;

  /** @param {{name: string}} browser @param {PageOptions} options */
  constructor(browser, { label, color, width = 1280, height = 720 } = {}) {
    this.browser = browser;
    this.label = `${label ?? color ?? 'a'} page in ${browser.name}`;
    this.width = width;
    this.height = height;
  }

  /** @param {PageOptions} options */
  static scripts({ color, tone = 440, screen, scripts = [] }, { nativeSound = false } = {}) {
    const painted = color ? [source(paintMedia, { color, tone, nativeSound, screen })] : [];
    return [source(keepPeers), ...painted, ...scripts];
  }

  /** Goes to an address and returns when the page has loaded. */
  async goto(url) {
    await this.navigate(url);
    // A hidden page draws and measures nothing, so a test would fail for the wrong reason.
    await this.waitFor('the page is visible', "document.visibilityState === 'visible'");
  }

  /**
   * Runs an expression, or a function with arguments, in the page and returns its awaited value as JSON.
   *
   * @param {string | Function} what
   */
  async evaluate(what, ...args) {
    const expression = typeof what === 'function' ? source(what, ...args) : what;
    const json = await this.run(`(async () => JSON.stringify(await (${expression})))()`);
    return json === undefined ? undefined : JSON.parse(json);
  }

  /**
   * Polls the page until the expression, or function of `args`, is truthy, and returns its value.
   *
   * @param {string} description the end of "waited until …"
   * @param {string | Function} what
   * @param {{timeout?: number, why?: string | Function | (() => unknown), args?: unknown[]}} [options] `why`: evaluated in the
   *   page on failure, to explain the failure
   */
  waitFor(description, what, { timeout, why, args = [] } = {}) {
    return this.until(description, () => this.evaluate(what, ...args), {
      timeout,
      why: async () => {
        const reason = why ? `${JSON.stringify(await this.evaluate(why))}\n  ` : '';
        return reason + await this.state();
      },
    });
  }

  /** `until` from wait.mjs, for conditions of this page: a failure contains its name and state. */
  until(description, probe, { timeout, why = () => this.state() } = {}) {
    return until(`${description} (${this.label})`, probe, { timeout, why });
  }

  /** Describes the page in a few lines, for the message of a failed test. */
  async state() {
    const { url, status, alerts, controls } = await this.evaluate(outline);
    const { states, ...media } = await this.evaluate(receivedMedia);
    return [
      `${this.label} at ${url}`,
      `status: ${status.join(' | ') || '(none)'}`,
      ...alerts.map((text) => `alert: ${text}`),
      `controls: ${controls.join(', ') || '(none)'}`,
      `peers: ${states.join(', ') || '(none)'} ${JSON.stringify(media)}`,
      ...this.complaints().slice(-8),
    ].join('\n  ');
  }

  /** Returns all errors the page knows: uncaught ones, and those on its console. */
  complaints() {
    const errors = this.console.filter(({ level }) => level === 'error').map(({ text }) => `console: ${text}`);
    return [...this.exceptions.map((text) => `uncaught: ${text}`), ...errors];
  }

  /** @protected */
  hearConsole(level, text) {
    this.console.push({ level, text });
    if (this.console.length > keptConsoleLines) this.console.shift();
  }

  // Elements, found as a screen reader finds them.

  /**
   * Waits until exactly one exposed element has this role and, if given, exactly this accessible name.
   *
   * @param {string} role an ARIA role, such as button, textbox, radio, checkbox, status
   * @param {string} [name]
   * @returns {Promise<Element>}
   */
  find(role, name, { timeout } = {}) {
    return this.until(`there is ${article(role, name)}`, async () => {
      const handles = await this.query(role, name);
      if (handles.length !== 1) throw new NotYet(handles.length ? `there are ${handles.length}` : 'there is none');
      return new Element(this, handles[0], article(role, name));
    }, { timeout });
  }

  /** True if an exposed element has this role and name now. */
  async has(role, name) {
    return (await this.query(role, name)).length > 0;
  }

  /** Waits until there is such a control and it can be clicked, and clicks it with the mouse. */
  async click(role, name, options) {
    const element = await this.find(role, name, options);
    await element.click({ findAgain: () => this.find(role, name, options) });
  }

  /** Replaces the content of a text field by typing. */
  async fill(role, name, text) {
    const field = await this.find(role, name);
    await field.click();
    await field.evaluate(selectContent);
    if (text) await this.type(text);
    else await this.press('Delete');
  }

  /** Presses Tab until this control has the focus. One round through the page must be enough. */
  async tabTo(role, name) {
    const control = await this.find(role, name);
    const passed = [];
    for (let step = 0; step < 60; step += 1) {
      if (await control.evaluate(function () { return this === document.activeElement; })) return;
      passed.push(await this.evaluate(() => `${document.activeElement.localName} "${document.activeElement.innerText.trim().slice(0, 20)}"`));
      await this.press('Tab');
    }
    throw new Error(`the focus never reached ${control.description}; it passed ${passed.join(', ')}`);
  }

  /** Returns the texts of the page's status lines, which a screen reader would announce. */
  async status() {
    return (await this.evaluate(outline)).status.join(' | ');
  }

  /** Returns the page's current alerts. */
  async alerts() {
    return (await this.evaluate(outline)).alerts.join(' | ');
  }

  /** Waits until the status line matches. */
  waitForStatus(pattern, { timeout } = {}) {
    return this.until(`the status line says ${pattern}`, async () => {
      const text = await this.status();
      if (!pattern.test(text)) throw new NotYet(`it says "${text}"`);
      return text;
    }, { timeout });
  }

  // Appearance.

  async setViewport(width, height) {
    await this.resize(width, height);
    Object.assign(this, { width, height });
    await this.waitFor(`the window is ${width} wide`, `innerWidth === ${width}`, { why: 'innerWidth' });
  }

  async emulateMedia({ dark }) {
    await this.setDark(dark);
    this.dark = dark;
    await this.waitFor(`the page is ${dark ? 'dark' : 'light'}`, `matchMedia('(prefers-color-scheme: dark)').matches === ${dark}`);
  }

  /**
   * Writes a PNG of the page with this look, and then restores the page's size and color scheme.
   *
   * @param {string} file
   * @param {{width?: number, height?: number, dark?: boolean}} [look]
   */
  async screenshot(file, look = {}) {
    const before = { width: this.width, height: this.height, dark: this.dark };
    await this.looking(look, () => this.keepPicture(file));
    await this.looking(before, () => {});
  }

  /** Writes a PNG of the page in its current state. @param {string} file */
  async keepPicture(file) {
    const png = await this.capture();
    await mkdir(path.dirname(file), { recursive: true });
    await writeFile(file, png);
  }

  /** Runs a function after setting the page's size and color scheme. Does not restore them. */
  async looking({ width = this.width, height = this.height, dark = this.dark }, task) {
    if (dark !== this.dark) await this.emulateMedia({ dark });
    if (width !== this.width || height !== this.height) await this.setViewport(width, height);
    await this.evaluate(settle);
    return task();
  }

  // Supplied by each engine.

  /** Loads an address and returns after its load event. @param {string} url @returns {Promise<void>} */
  async navigate(url) { throw new Error('abstract'); }
  /** Runs an expression whose value is a promise of a string or undefined. @returns {Promise<string | undefined>} */
  async run(expression) { throw new Error('abstract'); }
  /** Handles of the exposed elements of a role and name. @returns {Promise<string[]>} */
  async query(role, name) { throw new Error('abstract'); }
  /** Like `run`, for a function source called with `this` being the element. @returns {Promise<string | undefined>} */
  async runOn(handle, functionSource) { throw new Error('abstract'); }
  /** Moves the mouse there and clicks with the main button, several times without a pause. */
  async clickAt(x, y, times = 1) { throw new Error('abstract'); }
  /** Presses the main button there, moves the mouse by this far, and releases the button. */
  async dragAt(x, y, byX, byY) { throw new Error('abstract'); }
  /** Types the text key by key into whatever has the focus. */
  async type(text) { throw new Error('abstract'); }
  /** Presses one key, such as Enter, Tab, Shift+Tab, Escape, Space, ArrowDown or a. */
  async press(key) { throw new Error('abstract'); }
  async resize(width, height) { throw new Error('abstract'); }
  async setDark(dark) { throw new Error('abstract'); }
  /** @returns {Promise<Buffer>} a PNG of the window's inside */
  async capture() { throw new Error('abstract'); }
  async reload() { throw new Error('abstract'); }
  /** Closes the tab as a user does, so the page gets `pagehide`. Closing it a second time does nothing. */
  async close() { throw new Error('abstract'); }
}

export class Element {
  constructor(page, handle, description) {
    Object.assign(this, { page, handle, description });
  }

  /** Calls a function in the page with `this` being the element. */
  async evaluate(fn, ...args) {
    const parameters = args.map((argument) => JSON.stringify(argument)).join(', ');
    const json = await this.page.runOn(this.handle, `async function () {
      return JSON.stringify(await (${fn}).call(this${parameters && `, ${parameters}`}));
    }`);
    return json === undefined ? undefined : JSON.parse(json);
  }

  /**
   * Clicks the middle of the element, once it can be clicked and has stopped moving. A click that missed it, because the page
   * moved it at the last moment, has had no effect and is repeated.
   *
   * @param {object} [options]
   * @param {number} [options.times]
   * @param {() => Promise<Element>} [options.findAgain] finds the element that has taken this one's place, if the page replaces it
   */
  async click({ times = 1, findAgain } = {}) {
    await this.page.until(`${this.description} can be clicked`, async () => {
      const { x, y, blocked, isGone } = await this.evaluate(clickPoint);
      if (isGone && findAgain) this.handle = (await findAgain()).handle;
      if (blocked) throw new NotYet(blocked);
      await this.page.clickAt(x, y, times);
      // An error means that the click has closed the document.
      if (!await this.page.evaluate(clickArrived).catch(() => true)) throw new NotYet('it moved before it was clicked');
      return true;
    });
  }

  /** Drags the element by its middle, once it can be clicked and has stopped moving. */
  async drag(byX, byY) {
    const { x, y } = await this.page.until(`${this.description} can be dragged`, async () => {
      const point = await this.evaluate(clickPoint);
      if (point.blocked) throw new NotYet(point.blocked);
      return point;
    });
    await this.page.evaluate(clickArrived); // A drag is no click: nothing waits for one.
    await this.page.dragAt(x, y, byX, byY);
  }

  /** Returns the element's visible text, or the value if it is a field. */
  text() {
    return this.evaluate(function () { return 'value' in this && this.localName !== 'button' ? this.value : this.innerText; });
  }

  focus() {
    return this.evaluate(function () { this.focus(); });
  }
}

/** Runs in a page. Waits until a change of size or color scheme has been drawn, including the transitions that it started. */
async function settle() {
  const nextFrame = () => new Promise((done) => requestAnimationFrame(done));
  // Wait for two frames, because the first may have started before the change.
  await nextFrame();
  await nextFrame();
  const ends = (animation) => animation.playState === 'running' && animation.effect.getComputedTiming().endTime !== Infinity;
  await Promise.all(document.getAnimations().filter(ends).map((animation) => animation.finished.catch(() => {})));
}

/** Runs on a field. */
function selectContent() {
  if (this.select) this.select();
  else getSelection().selectAllChildren(this);
}

/** Runs in a page. */
function outline() {
  const shown = (element) => element.checkVisibility({ visibilityProperty: true });
  const text = (element) => (element.getAttribute('aria-label') || element.innerText || element.labels?.[0]?.innerText || '').trim();
  const status = [...document.querySelectorAll('[role=status], output')].filter(shown).map(text).filter(Boolean);
  const alerts = [...document.querySelectorAll('[role=alert]')].filter(shown).map(text).filter(Boolean);
  const controls = [...document.querySelectorAll('button, input, textarea, select, [role=button]')].filter(shown).map((element) => {
    const kind = element.localName === 'input' ? element.type : element.localName;
    return `${kind} "${text(element)}"${element.disabled ? ' (disabled)' : ''}`;
  });
  return { url: location.href, status, alerts, controls };
}

function article(role, name) {
  return name === undefined ? `a ${role}` : `a ${role} "${name}"`;
}
