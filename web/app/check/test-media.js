// The stream with which the network is measured: noise, which cannot be compressed well, and a tone. It is not shown or played.

/** The size of the video in pixels. Of a smaller one, Firefox 153 sends at most 500 kbit/s. */
const [width, height] = [1280, 720];
/** Each pixel of the noise is a square with sides of this many pixels. */
const grain = 16;
const framesPerSecond = 15;

/** @returns {{audio: MediaStreamTrack, video: MediaStreamTrack, stop: () => void}} */
export function makeTracks() {
  const canvas = Object.assign(document.createElement('canvas'), { width, height });
  const small = Object.assign(document.createElement('canvas'), { width: width / grain, height: height / grain });
  const [context, smallContext] = [canvas.getContext('2d'), small.getContext('2d')];
  const noise = new ImageData(small.width, small.height);
  const pixels = new Uint32Array(noise.data.buffer);
  const draw = () => {
    for (let index = 0; index < pixels.length; index += 1) pixels[index] = Math.random() * 2 ** 32 | 0xff000000;
    smallContext?.putImageData(noise, 0, 0);
    context?.drawImage(small, 0, 0, width, height);
  };
  draw();
  const drawing = setInterval(draw, 1000 / framesPerSecond);

  const audioContext = new AudioContext();
  const oscillator = new OscillatorNode(audioContext, { frequency: 440 });
  const destination = audioContext.createMediaStreamDestination();
  oscillator.connect(new GainNode(audioContext, { gain: 0.2 })).connect(destination);
  oscillator.start();

  const [video] = canvas.captureStream(framesPerSecond).getVideoTracks();
  const [audio] = destination.stream.getAudioTracks();
  const stop = () => {
    clearInterval(drawing);
    video.stop();
    audio.stop();
    audioContext.close().catch(() => {});
  };
  return { audio, video, stop };
}
