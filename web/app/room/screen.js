// Screen sharing, with audio where the browser supports it. Sends nothing itself: the room publishes the publisher
// that this file creates.
import { OT } from '../../lib/index.js';
import { box } from '../shared/dom.js';

/**
 * Maps the SDK's error names to problems; all other errors are `share_failed`. Null means that the user chose no
 * screen, which is not a problem.
 * @type {Record<string, string | null>}
 */
const meanings = {
  OT_USER_MEDIA_ACCESS_DENIED: null, OT_PERMISSION_DENIED: null, OT_SCREEN_SHARING_NOT_SUPPORTED: 'share_unsupported',
  OT_NOT_SUPPORTED: 'share_unsupported',
};

export class Screen {
  /** @type {any} the SDK's publisher, from `open` until the share ends; otherwise null */
  publisher = null;

  /** @param {(event: import('./types.js').Event) => void} dispatch @param {(publisher: any) => void} publish */
  constructor(dispatch, publish) {
    this.dispatch = dispatch;
    this.publish = publish;
  }

  open() {
    this.close();
    const publisher = OT.initPublisher(box('own-screen'), {
      insertMode: 'append', width: '100%', height: '100%', name: '', videoSource: 'screen', audioSource: 'screen', frameRate: 15,
    }, (/** @type {any} */ error) => {
      if (publisher !== this.publisher) return;
      if (error) return this.#failed(error);
      this.publish(publisher);
      this.dispatch({ type: 'screenOn' });
    });
    this.publisher = publisher;
    // The publisher is also destroyed if the user stops sharing with the browser's own button.
    publisher.on('destroyed', () => this.#ended(publisher));
  }

  close() {
    const { publisher } = this;
    this.publisher = null;
    publisher?.destroy();
  }

  /** @param {{name: string}} error */
  #failed({ name }) {
    this.publisher = null;
    this.dispatch({ type: 'screenOff', why: name in meanings ? meanings[name] : 'share_failed' });
  }

  /** @param {any} publisher */
  #ended(publisher) {
    // If the capture was refused or failed, the publisher is destroyed before `initPublisher` reports the error, which
    // `#failed` handles.
    if (publisher !== this.publisher || publisher.accessAllowed === false) return;
    this.publisher = null;
    this.dispatch({ type: 'screenOff' });
  }
}
