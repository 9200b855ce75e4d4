import Foundation
import TestSupport

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A small S3 service, in Python, which checks signatures with code of its own. It keeps objects in memory.
final class S3Service: Sendable {
    static let accessKey = "AKIDEXAMPLE"
    static let secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
    static let bucket = "recordings"
    static let region = "eu-test-1"

    let port: Int
    private let program: ChildProgram
    private let input = Pipe()

    /// Starts it on a free port. Waits on a thread of its own, because all tests share those of tasks.
    static func start() async throws -> S3Service { try await blocking { try S3Service() } }

    private init() throws {
        let output = Pipe()
        program = try ChildProgram(
            "/usr/bin/python3",
            ["-c", Self.script, Self.accessKey, Self.secret, Self.region, Self.bucket],
            input: input.fileHandleForReading.fileDescriptor,
            output: output.fileHandleForWriting.fileDescriptor)
        try output.fileHandleForWriting.close()
        try input.fileHandleForReading.close()
        var line = Data()
        while let byte = try output.fileHandleForReading.read(upToCount: 1), !byte.isEmpty,
            byte != Data([10])
        { line += byte }
        guard let port = Int(String(decoding: line, as: UTF8.self)) else {
            throw SocketClient.TimedOut(
                description: "the S3 service did not start: \(String(decoding: line, as: UTF8.self))")
        }
        self.port = port
    }

    /// Ends it: its standard input ends.
    func stop() async throws {
        try await blocking { [self] in
            try? input.fileHandleForWriting.close()
            program.waitForEnd(seconds: 20)
        }
    }

    var endpoint: String { "http://127.0.0.1:\(port)" }

    /// Lets the next requests fail with status 503.
    func fail(_ count: Int) async throws { _ = try await get("/_control?fail=\(count)") }
    /// Forgets the unfinished uploads.
    func forget() async throws { _ = try await get("/_control?forget=1") }
    /// Forgets the first part of each unfinished upload.
    func loseParts() async throws { _ = try await get("/_control?lose=1") }
    /// Redirects all requests to another region.
    func redirect() async throws { _ = try await get("/_control?redirect=1") }
    /// The numbers of objects and of unfinished uploads.
    func contents() async throws -> String { String(decoding: try await get("/_control?contents=1").1, as: UTF8.self) }
    /// What was requested, such as `PUT 200`, and why requests were refused.
    func requests() async throws -> [String] {
        String(decoding: try await get("/_control?log=1").1, as: UTF8.self).split(separator: "\n").map(
            String.init)
    }

    /// Requests a path, or a URL.
    func get(_ path: String) async throws -> (Int, Data) {
        let (data, response) = try await URLSession.shared.data(
            from: URL(string: path.hasPrefix("/") ? endpoint + path : path) ?? URL(filePath: "/"))
        return ((response as? HTTPURLResponse)?.statusCode ?? 0, data)
    }

    private static let script = #"""
        import hashlib, hmac, http.server, sys, threading, time, urllib.parse as u
        key, secret, region, bucket = sys.argv[1:]
        objects, uploads, log, state = {}, {}, [], {'fail': 0, 'made': 0, 'redirect': 0}

        def sign(method, path, query, headers, names, payload, stamp):
            quote = lambda text: u.quote(text, safe='-_.~')
            pairs = sorted((quote(a), quote(b)) for a, b in query if a != 'X-Amz-Signature')
            lines = ''.join('%s:%s\n' % (n, ' '.join((headers[n] or '').split())) for n in names)
            text = '\n'.join([method, path, '&'.join('='.join(p) for p in pairs), lines, ';'.join(names), payload])
            scope = '/'.join([stamp[:8], region, 's3', 'aws4_request'])
            goal = '\n'.join(['AWS4-HMAC-SHA256', stamp, scope, hashlib.sha256(text.encode()).hexdigest()])
            code = ('AWS4' + secret).encode()
            for part in scope.split('/') + [goal]:
                code = hmac.new(code, part.encode(), hashlib.sha256).digest()
            return scope, code.hex()

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = 'HTTP/1.1'
            def log_message(self, *_): pass
            def answer(self, status, body=b'', headers={}, length=None):
                log.append('%s %d' % (self.command, status))
                self.send_response(status)
                for name, value in headers.items(): self.send_header(name, value)
                self.send_header('Content-Length', str(len(body) if length is None else length))
                self.end_headers()
                if self.command != 'HEAD': self.wfile.write(body)
            def refuse(self, status, code, text):
                log.append('%s: %s' % (code, text))
                xml = '<Error><Code>%s</Code><Message>%s</Message><AWSAccessKeyId>%s</AWSAccessKeyId></Error>'
                self.answer(status, (xml % (code, text, key)).encode())
            def problem(self, path, query, body):
                values = dict(query)
                if 'X-Amz-Signature' in values:
                    stamp, names = values['X-Amz-Date'], values['X-Amz-SignedHeaders'].split(';')
                    scope, code = sign(self.command, path, query, self.headers, names, 'UNSIGNED-PAYLOAD', stamp)
                    ends = time.mktime(time.strptime(stamp, '%Y%m%dT%H%M%SZ')) - time.timezone + int(values['X-Amz-Expires'])
                    if ends < time.time(): return 'expired'
                    right = values['X-Amz-Credential'] == key + '/' + scope
                    return None if right and hmac.compare_digest(code, values['X-Amz-Signature']) else 'signature'
                given = self.headers['Authorization'] or ''
                if not given.startswith('AWS4-HMAC-SHA256 '): return 'no signature'
                parts = dict(p.strip().split('=', 1) for p in given[17:].split(','))
                names, payload = parts['SignedHeaders'].split(';'), self.headers['x-amz-content-sha256']
                stamp = self.headers['x-amz-date']
                if not {'host', 'x-amz-content-sha256', 'x-amz-date'} <= set(names): return 'unsigned headers'
                if hashlib.sha256(body).hexdigest() != payload: return 'hash of the body'
                scope, code = sign(self.command, path, query, self.headers, names, payload, stamp)
                right = parts['Credential'] == key + '/' + scope
                return None if right and hmac.compare_digest(code, parts['Signature']) else 'signature'
            def handle_request(self):
                path, _, text = self.path.partition('?')
                query = u.parse_qsl(text, keep_blank_values=True)
                body = self.rfile.read(int(self.headers['Content-Length'] or 0))
                values = dict(query)
                if path == '/_control':
                    state['fail'] = int(values.get('fail', state['fail']))
                    state['redirect'] = int(values.get('redirect', state['redirect']))
                    if 'forget' in values: uploads.clear()
                    if 'lose' in values:
                        for parts in uploads.values(): parts.pop(1, None)
                    shown = '\n'.join(log).encode()
                    if 'contents' in values: shown = ('%d %d' % (len(objects), len(uploads))).encode()
                    self.answer(200, shown)
                    log.pop()
                    return
                if state['fail'] > 0:
                    state['fail'] -= 1
                    return self.refuse(503, 'SlowDown', 'Reduce your request rate.')
                if state['redirect']:
                    return self.answer(301, headers={'x-amz-bucket-region': 'eu-other-2', 'Location': 'http://127.0.0.1:1/'})
                problem = self.problem(path, query, body)
                if problem: return self.refuse(403, 'SignatureDoesNotMatch', problem)
                if not path.startswith('/' + bucket + '/'): return self.refuse(404, 'NoSuchBucket', 'none')
                if self.command in ('GET', 'HEAD'):
                    found = objects.get(path)
                    if found is None: return self.refuse(404, 'NoSuchKey', 'none')
                    return self.answer(200, found if self.command == 'GET' else b'', length=len(found))
                if self.command == 'DELETE':
                    if 'uploadId' not in values: objects.pop(path, None)
                    elif uploads.pop(values['uploadId'], None) is None: return self.refuse(404, 'NoSuchUpload', 'none')
                    return self.answer(204)
                if 'uploads' in values:
                    state['made'] += 1
                    name = 'up/load+%d==' % state['made']
                    uploads[name] = {}
                    return self.answer(200, ('<R><UploadId>%s</UploadId></R>' % name).encode())
                parts = uploads.get(values.get('uploadId'))
                if parts is None: return self.refuse(404, 'NoSuchUpload', 'none')
                if self.command == 'PUT':
                    tag = '"%s"' % hashlib.md5(body).hexdigest()
                    parts[int(values['partNumber'])] = (tag, body)
                    return self.answer(200, headers={'ETag': tag})
                xml = body.decode().replace('&quot;', '"')
                if xml.count('<Part>') > len(parts): return self.refuse(400, 'InvalidPart', 'a part is missing')
                if any(('<ETag>%s</ETag>' % tag) not in xml for tag, _ in parts.values()):
                    return self.answer(200, b'<Error><Code>InvalidPart</Code><Message>a tag</Message></Error>')
                objects[path] = b''.join(part for _, (_, part) in sorted(parts.items()))
                del uploads[values['uploadId']]
                self.answer(200, b'<CompleteMultipartUploadResult></CompleteMultipartUploadResult>')
            do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = handle_request

        server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        print(server.server_address[1], flush=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        sys.stdin.read()
        """#
}
