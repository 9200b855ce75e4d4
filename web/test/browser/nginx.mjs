// nginx in front of the server, with the recommended configuration.
import { readFile, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import path from 'node:path';
import { Child, removeFolder, temporaryFolder } from './process.mjs';
import { freePort, repository } from './server.mjs';
import { NotYet, until } from './wait.mjs';

/**
 * Starts nginx in the foreground with a separate prefix, pid file and logs.
 *
 * The sample contains the directives inside `http { … }`: `upstream`, `map` and `server` blocks. The test covers how the sample
 * forwards requests. TLS and servers that only redirect to TLS are removed, because a test has no certificate that a browser
 * trusts.
 *
 * @param {object} options
 * @param {number} options.upstreamPort the server's port
 * @param {number} [options.port] otherwise a free one
 * @param {string} [options.path] the path below which the server is, as in the repository's sample for that; everything beside it is
 *   404
 * @param {string} [options.sample] the text of the sample; default: the repository's sample
 * @param {[RegExp | string, string][]} [options.substitutions] more replacements, applied to the sample first
 */
export async function startNginx({ upstreamPort, port: chosen, path: base = '', sample, substitutions = [] }) {
  const folder = await temporaryFolder('nginx');
  const port = chosen ?? await freePort();
  const text = sample ?? await readFile(path.join(repository, 'deploy', base ? 'nginx-path.conf.sample' : 'nginx.conf.sample'), 'utf8');
  /** @type {[RegExp | string, string][]} */
  const ofPath = base ? [['/video', base], [/root .*;/g, 'location / { return 404; }']] : [];
  const replaced = [...ofPath, ...substitutions].reduce((result, [from, to]) => result.replaceAll(from, to), text);
  const adapted = adapt(replaced, port, upstreamPort);
  await writeFile(path.join(folder, 'site.conf'), adapted);
  await writeFile(path.join(folder, 'nginx.conf'), mainConfiguration(folder));
  const child = new Child('nginx', ['-p', folder, '-c', path.join(folder, 'nginx.conf'), '-e', 'stderr'], {
    // Debian installs nginx in a directory that only root's PATH contains.
    env: { PATH: `${process.env.PATH}:/usr/sbin:/sbin` },
  });
  const nginx = {
    port,
    url: `http://127.0.0.1:${port}${base}`,
    /** The configuration of the running nginx, for error messages. */
    configuration: adapted,
    accessLog: () => readFile(path.join(folder, 'access.log'), 'utf8'),
    get log() { return child.log; },
    async close() {
      await child.kill();
      await removeFolder(folder);
    },
  };
  try {
    await until('nginx answers', async () => {
      if (child.ended) throw new Error(`nginx ended:\n${child.tail()}\n${adapted}`);
      if (!await answers(nginx.url)) throw new NotYet('it refuses connections');
      return true;
    });
  } catch (error) {
    await nginx.close();
    throw error;
  }
  return nginx;
}

function mainConfiguration(folder) {
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map((kind) => `  ${kind}_temp_path ${folder}/${kind};`).join('\n');
  return `
${process.getuid?.() === 0 ? 'user root;' : ''}
daemon off;
pid ${folder}/nginx.pid;
error_log stderr warn;
worker_processes 1;
events { worker_connections 256; }
http {
  access_log ${folder}/access.log;
${temporary}
  include ${folder}/site.conf;
}
`;
}

/** Returns the sample with the test's ports and without TLS. */
export function adapt(sample, port, upstreamPort) {
  const inner = insideHttp(sample);
  return blocks(inner)
    .filter(({ name, text }) => !(name === 'server' && /return\s+30[1278]\s+https:/.test(text)))
    .map(({ text }) => text)
    .join('\n')
    .replace(/^\s*(ssl_\w+|ssl|http2|http3|include\s+\S*(ssl|letsencrypt)\S*)\b[^;]*;.*$/gm, '')
    .replace(/^(\s*)listen\s+(\[[^\]]*\]:)[^;]*;.*$/gm, '') // IPv6, a second listener on the same port
    .replace(/^(\s*)listen\s[^;]*;/gm, `$1listen 127.0.0.1:${port};`)
    .replace(/\b(server\s+|proxy_pass\s+http:\/\/)(127\.0\.0\.1|localhost|\[::1\]):\d+/g, `$1127.0.0.1:${upstreamPort}`);
}

/** Returns the content of `http { … }`, or everything. */
function insideHttp(sample) {
  const http = blocks(sample).find(({ name }) => name === 'http');
  return http ? http.text.slice(http.text.indexOf('{') + 1, http.text.lastIndexOf('}')) : sample;
}

/**
 * Splits a configuration into its outermost directives, each with the comments before it.
 *
 * @returns {{name: string, text: string}[]}
 */
function blocks(text) {
  const found = [];
  let depth = 0;
  let start = 0;
  // Comments and quoted strings may contain braces and semicolons.
  for (const match of text.matchAll(/#[^\n]*|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|[{};]/g)) {
    if (match[0] === '{') depth += 1;
    if (match[0] === '}') depth -= 1;
    if (depth === 0 && (match[0] === '}' || match[0] === ';')) {
      const end = match.index + 1;
      const piece = text.slice(start, end);
      found.push({ name: piece.replace(/#[^\n]*/g, '').trim().split(/[\s{;]/, 1)[0], text: piece });
      start = end;
    }
  }
  return found;
}

function answers(url) {
  return new Promise((resolve) => {
    request(url, { method: 'HEAD', agent: false }, (response) => resolve(Boolean(response.resume())))
      .on('error', () => resolve(false))
      .end();
  });
}
