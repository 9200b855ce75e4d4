// A client whose requests a script answers, for the parts of the SDK that use a `Client`.
import { ConfabError } from '../../lib/errors.js';
import { Emitter } from '../../lib/events.js';

export class ScriptClient extends Emitter {
  state = 'connected';
  /** @type {any} */
  welcome = null;
  ice = { current: async () => ({ servers: [], relayOnly: false }) };
  media = { isUsed: false, prepare() {}, close() {} };
  /** @type {any[]} what the part has done */
  done = [];
  /** @type {{message: any, resolve: (answer: any) => void, reject: (error: any) => void}[]} newest first */
  #open = [];

  async connect() {
    return this.welcome;
  }

  /** @param {string} type @param {any} [members] @returns {Promise<any>} */
  request(type, members = {}) {
    const message = JSON.parse(JSON.stringify({ type, ...members }));
    const { type: _type, ...rest } = message;
    this.done.push({ send: type, ...rest });
    return new Promise((resolve, reject) => { this.#open.unshift({ message, resolve, reject }); });
  }

  /**
   * Handles the inputs that all parts have.
   * @param {Record<string, any>} input @param {string} word
   */
  play(input, word) {
    switch (word) {
      case 'server': return this.#tell(input.server);
      case 'answer': return this.#answer(input.answer);
      case 'connected':
      case 'restarted':
      case 'resumed':
        this.state = 'connected';
        this.emit('connected', { resumed: word === 'resumed' });
        return word === 'restarted' ? this.emit('restarted', { state: null }) : undefined;
      case 'reconnecting':
      case 'expired':
        this.state = 'reconnecting';
        return this.emit(word);
      case 'left':
      case 'refused':
        this.state = 'closed';
        return this.emit('closed', word === 'left' ? { code: 1000, error: null } : { code: 4403, error: new ConfabError({ code: input.refused, message: 'No.' }) });
      default: throw new Error(`no input "${word}"`);
    }
  }

  /** @param {any} message to the newest request without an answer, or to the newest one of the type `to` */
  #answer({ to, ...message }) {
    const index = this.#open.findIndex((one) => to === undefined || one.message.type === to);
    const [{ message: asked, resolve, reject }] = this.#open.splice(index, 1);
    if (message.type === 'error') return reject(new ConfabError(message));
    const answer = { ...message, ...asked.sessionId ? { sessionId: asked.sessionId } : {} };
    resolve(answer);
    if (answer.type !== 'ok') this.#tell(answer);
  }

  /** @param {any} message */
  #tell(message) {
    this.emit('message', message);
    this.emit(`message:${message.type}`, message);
  }
}
