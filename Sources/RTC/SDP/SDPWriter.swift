extension SessionDescription {
    /// The description as text, with CRLF at the end of each line (RFC 8866 §5).
    public var text: String {
        var writer = SDPWriter()
        writer.line("v=0")
        writer.line("o=\(origin.username) \(origin.sessionID) \(origin.version) IN IP4 127.0.0.1")
        writer.line("s=-")
        writer.line("t=0 0")
        for group in bundleGroups { writer.attribute((["group:BUNDLE"] + group).joined(separator: " ")) }
        if isICELite { writer.attribute("ice-lite") }
        if allowsMixedExtensions { writer.attribute("extmap-allow-mixed") }
        if let direction { writer.attribute(direction.rawValue) }
        writer.transport(transport)
        for section in sections { writer.section(section) }
        return writer.text
    }
}

/// Writes the lines of a description.
private struct SDPWriter {
    var text = ""

    mutating func line(_ line: String) {
        text += line
        text += "\r\n"
    }

    mutating func attribute(_ value: String) { line("a=" + value) }
    mutating func attribute(_ value: String, if isTrue: Bool) {
        if isTrue { attribute(value) }
    }

    mutating func transport(_ transport: TransportDescription) {
        for candidate in transport.candidates { attribute("candidate:" + candidate.line) }
        attribute("end-of-candidates", if: transport.hasEndOfCandidates)
        if let ufrag = transport.ufrag { attribute("ice-ufrag:" + ufrag) }
        if let pwd = transport.pwd { attribute("ice-pwd:" + pwd) }
        for fingerprint in transport.fingerprints { attribute("fingerprint:" + fingerprint.text) }
        if let setup = transport.setup { attribute("setup:" + setup.rawValue) }
    }

    mutating func section(_ section: MediaSection) {
        let formats = section.isRTP ? section.payloads.map { "\($0.payloadType)" } : section.formats
        line("m=\(section.kind.name) \(section.port) \(section.protocolName) " + formats.joined(separator: " "))
        line("c=IN IP4 0.0.0.0")
        transport(section.transport)
        if let mid = section.mid { attribute("mid:" + mid) }
        attribute("extmap-allow-mixed", if: section.allowsMixedExtensions)
        for mapping in section.extensions { attribute("extmap:" + mapping.text) }
        if let direction = section.direction { attribute(direction.rawValue) }
        for stream in section.streams { attribute("msid:" + stream.text) }
        attribute("rtcp-mux", if: section.hasRTCPMux)
        attribute("rtcp-rsize", if: section.hasReducedSizeRTCP)
        attribute("bundle-only", if: section.isBundleOnly)
        for payload in section.payloads { self.payload(payload) }
        for rid in section.rids { attribute("rid:" + rid.text) }
        if let simulcast = section.simulcast { attribute("simulcast:" + simulcast.text) }
        for group in section.sourceGroups {
            attribute("ssrc-group:\(group.semantics.rawValue)" + group.ssrcs.map { " \($0)" }.joined())
        }
        for source in section.sources { self.source(source) }
    }

    private mutating func payload(_ payload: PayloadFormat) {
        if !payload.encoding.isEmpty {
            let channels = payload.channels == 1 ? "" : "/\(payload.channels)"
            attribute("rtpmap:\(payload.payloadType) \(payload.encoding)/\(payload.clockRate)" + channels)
        }
        for (feedback, name) in RTCPFeedback.names where payload.feedback.contains(feedback) {
            attribute("rtcp-fb:\(payload.payloadType) \(name)")
        }
        if !payload.parameters.isEmpty { attribute("fmtp:\(payload.payloadType) \(payload.parameters)") }
    }

    private mutating func source(_ source: SourceDescription) {
        if let cname = source.cname { attribute("ssrc:\(source.ssrc) cname:\(cname)") }
        if let msid = source.msid { attribute("ssrc:\(source.ssrc) msid:\(msid.text)") }
        // Write a line even for a source without attributes.
        attribute("ssrc:\(source.ssrc)", if: source.cname == nil && source.msid == nil)
    }
}

extension Fingerprint {
    /// The fingerprint as text, such as `sha-256 AB:CD:…` (RFC 8122 §5).
    public var text: String {
        let digits = Array("0123456789ABCDEF".utf8)
        var text: [UInt8] = []
        for byte in bytes {
            if !text.isEmpty { text.append(UInt8(ascii: ":")) }
            text += [digits[Int(byte >> 4)], digits[Int(byte & 15)]]
        }
        return "\(algorithm.rawValue) \(String(decoding: text, as: UTF8.self))"
    }
}

extension ExtensionMapping {
    fileprivate var text: String {
        let direction = direction.map { "/\($0.rawValue)" } ?? ""
        return "\(id)\(direction) \(uri)" + (attributes.isEmpty ? "" : " \(attributes)")
    }
}

extension MediaStreamID {
    fileprivate var text: String { track.map { "\(stream) \($0)" } ?? stream }
}

extension RestrictionIdentifier {
    fileprivate var text: String {
        var restrictions: [String] = []
        if !payloadTypes.isEmpty { restrictions.append("pt=" + payloadTypes.map { "\($0)" }.joined(separator: ",")) }
        if !self.restrictions.isEmpty { restrictions.append(self.restrictions) }
        let end = restrictions.isEmpty ? "" : " " + restrictions.joined(separator: ";")
        return "\(id) \(isSend ? "send" : "recv")" + end
    }
}

extension Simulcast {
    fileprivate var text: String {
        let lists = [("send", send), ("recv", receive)].filter { !$0.1.isEmpty }
        return lists.map { direction, streams in
            "\(direction) " + streams.map { ($0.isPaused ? "~" : "") + $0.rid }.joined(separator: ";")
        }.joined(separator: " ")
    }
}
