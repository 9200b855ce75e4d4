// Files in the chat: choosing or dropping a file, upload progress and cancellation, and saving or removing a sent file.
import { box, button, enable, icon, input, setAttribute, setText, show } from '../shared/dom.js';

/** @typedef {import('./types.js').State} State */
/**
 * @typedef {object} Files the file operations of the page
 * @property {(file: File, transfer: import('../../lib/rooms/room-files.js').Transfer) => Promise<void>} send
 *   uploads a file to the room
 * @property {(fileId: string) => Promise<Blob | undefined>} fetch
 *   downloads a file; undefined if the user is in no room
 * @property {(fileId: string) => Promise<void>} remove removes a file from the room
 * @property {(error: {code: string, message: string}) => void} failed shows an error
 */

export class FileView {
  /** @type {AbortController | null} the current upload; there is at most one */
  #upload = null;
  #limit = 0;

  /** @param {import('./strings.js').Strings} strings @param {Files} files */
  constructor(strings, files) {
    this.strings = strings;
    this.files = files;
    const picker = input('file-input');
    button('attach').addEventListener('click', () => picker.click());
    picker.addEventListener('change', () => {
      const files = [...picker.files ?? []];
      // Clear the value, so that choosing the same file again fires `change`.
      picker.value = '';
      this.#choose(files);
    });
    button('file-cancel').addEventListener('click', () => this.#upload?.abort());
    // Listen on the whole document: by default, a browser opens a dropped file in place of the page, so a file that is
    // dropped next to the chat would end the visit.
    document.addEventListener('dragover', (event) => {
      if (!event.dataTransfer?.types.includes('Files')) return;
      event.preventDefault();
      event.dataTransfer.dropEffect = this.#takesAt(event.target) ? 'copy' : 'none';
    });
    document.addEventListener('drop', (event) => {
      if (!event.dataTransfer?.types.includes('Files')) return;
      event.preventDefault();
      if (this.#takesAt(event.target)) this.#choose([...event.dataTransfer.files]);
    });
  }

  /** @param {EventTarget | null} place */
  #takesAt(place) {
    return this.#limit > 0 && place instanceof Node && box('panel-chat').contains(place);
  }

  /** @param {File[]} files */
  #choose(files) {
    if (files.length > 1 || (this.#upload && files.length)) {
      return this.files.failed({ code: 'file_not_alone', message: this.strings.room.oneFile });
    }
    if (files.length) this.#send(files[0]);
  }

  /** @param {State} state */
  render({ room }) {
    this.#limit = room?.options.chat ? room.maxFileSize : 0;
    show(button('attach'), this.#limit > 0);
    enable(button('attach'), !this.#upload);
    if (!room) this.#upload?.abort();
  }

  /** @param {File} file */
  async #send(file) {
    if (file.size > this.#limit) {
      const most = this.strings.room.bytes(this.#limit);
      return this.files.failed({ code: 'file_too_large', message: this.strings.room.fileTooLarge(file.name, most) });
    }
    const upload = new AbortController();
    this.#upload = upload;
    const words = this.strings.room.sending(file.name);
    show(box('file-progress'), true);
    setText(box('file-name'), words);
    setText(box('file-status'), words);
    // Move the focus from one button to the other, because a button loses it when it is disabled or hidden.
    if (document.activeElement === button('attach')) button('file-cancel').focus();
    enable(button('attach'), false);
    const bar = /** @type {HTMLProgressElement} */ (box('file-share'));
    bar.value = 0;
    let reported = '';
    try {
      await this.files.send(file, { signal: upload.signal, onProgress: (share) => { bar.value = share; } });
    } catch (error) {
      // Leaving the room also aborts the upload, but the error may be a different one. So check the signal, not the
      // error.
      if (upload.signal.aborted) reported = this.strings.room.fileCanceled;
      else this.files.failed({ code: 'file_failed', message: /** @type {any} */ (error).message });
    }
    this.#upload = null;
    setText(box('file-status'), reported);
    enable(button('attach'), true);
    if (document.activeElement === button('file-cancel')) button('attach').focus();
    show(box('file-progress'), false);
  }

  /**
   * Returns the elements of a sent file: a button with its name that saves it, and a button that removes it. The
   * button that removes it is hidden until `allow` shows it.
   * @param {import('./types.js').ChatLine} line
   */
  element({ text, file }) {
    const row = document.createElement('span');
    row.className = 'words file-line';
    if (!file) return row;
    const save = document.createElement('button');
    save.type = 'button';
    save.className = 'file-link';
    save.dir = 'auto';
    save.append(icon('attach'), this.strings.room.saveFile(text, this.strings.room.bytes(file.size)));
    save.addEventListener('click', () => this.#save(save, text, file.fileId));
    const remove = document.createElement('button');
    remove.type = 'button';
    remove.className = 'file-link file-remove';
    remove.hidden = true;
    remove.textContent = this.strings.room.removeFile;
    remove.setAttribute('aria-label', this.strings.room.removeFileNamed(text));
    remove.addEventListener('click', () => this.#remove(remove, file.fileId));
    row.append(save, remove);
    return row;
  }

  /**
   * Shows or hides the button that removes a file.
   * @param {HTMLElement} line
   * @param {boolean} mayRemove
   */
  allow(line, mayRemove) {
    const remove = line.querySelector('.file-remove');
    if (remove instanceof HTMLElement) remove.hidden = !mayRemove;
  }

  /** @param {HTMLButtonElement} remove @param {string} fileId */
  async #remove(remove, fileId) {
    // A second press would request the removal of a file that is already gone.
    if (remove.hasAttribute('aria-busy')) return;
    setAttribute(remove, 'aria-busy', 'true');
    await this.files.remove(fileId);
    setAttribute(remove, 'aria-busy', null);
  }

  /** @param {HTMLButtonElement} save @param {string} name @param {string} fileId */
  async #save(save, name, fileId) {
    // Do not disable the button, because it would lose the focus.
    if (save.hasAttribute('aria-busy')) return;
    setAttribute(save, 'aria-busy', 'true');
    try {
      const blob = await this.files.fetch(fileId);
      if (blob) offer(blob, name);
    } catch (error) {
      this.files.failed({ code: 'file_failed', message: /** @type {any} */ (error).message });
    }
    setAttribute(save, 'aria-busy', null);
  }
}

/** @param {Blob} blob @param {string} name */
function offer(blob, name) {
  const link = document.createElement('a');
  // Do not use the file's own type: the browser might open the file instead of saving it.
  link.href = URL.createObjectURL(new Blob([blob], { type: 'application/octet-stream' }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
