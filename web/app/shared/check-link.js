// Opens the page `/check`, for people whose camera, microphone or network makes trouble.
import { at } from './base.js';

/** Opens the page in another tab, so that a chat or a room continues in this one. */
export function openCheck() {
  window.open(at('/check'), '_blank', 'noopener');
}
