/// The tracks of an MP4 file (ISO/IEC 14496-12), to check that a composed part is whole without another program.
public struct MP4Tracks: Hashable, Sendable {
    /// A track and its number of samples. A sample of video is a frame.
    public struct Track: Hashable, Sendable {
        /// `vide`, `soun`, or another handler.
        public var kind: String
        /// The number of video frames, or of audio frames (1024 samples each in AAC).
        public var samples: Int

        public init(kind: String, samples: Int) { (self.kind, self.samples) = (kind, samples) }
    }

    /// The maximum size of the index in bytes: 24 hours of audio and video have 60 MB.
    static let maxIndex: Int64 = 128 << 20
    /// The maximum number of boxes at the top of the file. ffmpeg writes four.
    static let maxBoxes = 64

    /// In the order of the file.
    public private(set) var tracks: [Track] = []

    /// The number of frames of the only video track; nil if there is none, or more than one.
    public var frames: Int? {
        let video = tracks.filter { $0.kind == "vide" }
        return video.count == 1 ? video[0].samples : nil
    }

    /// Reads the index of a file.
    ///
    /// - Parameters:
    ///   - size: of the file in bytes.
    ///   - read: returns bytes at an offset, or fewer if the file ends.
    /// - Returns: nil if the file is cut off, or is not an MP4 file with an index.
    public init?(size: Int64, read: (_ offset: Int64, _ count: Int) -> [UInt8]) {
        var (position, hasIndex): (Int64, Bool) = (0, false)
        for _ in 0..<Self.maxBoxes where position < size {
            guard let box = MP4BoxHeader(read(position, MP4BoxHeader.maxLength)[...]), box.size <= size - position
            else { return nil }
            if position == 0, box.kind != "ftyp" { return nil }
            if box.kind == "moov" {
                guard !hasIndex, box.size <= Self.maxIndex else { return nil }
                hasIndex = true
                let bytes = read(position, Int(box.size))
                guard bytes.count == Int(box.size) else { return nil }
                takeMovie(bytes.dropFirst(box.length))
            }
            position += box.size
        }
        guard hasIndex, position == size else { return nil }
    }

    private mutating func takeMovie(_ movie: ArraySlice<UInt8>) {
        MP4BoxHeader.children(movie) { kind, track in
            guard kind == "trak" else { return }
            var found = Track(kind: "", samples: 0)
            MP4BoxHeader.children(track) { kind, media in
                guard kind == "mdia" else { return }
                MP4BoxHeader.children(media) { kind, content in
                    // version, flags, a reserved number, and the handler.
                    if kind == "hdlr" { found.kind = String(decoding: content.dropFirst(8).prefix(4), as: UTF8.self) }
                    guard kind == "minf" else { return }
                    MP4BoxHeader.children(content) { kind, table in
                        guard kind == "stbl" else { return }
                        MP4BoxHeader.children(table) { kind, content in
                            // version, flags, one size for all, and the number.
                            if kind == "stsz" {
                                found.samples = Int(MP4BoxHeader.number(content.dropFirst(8).prefix(4)) ?? 0)
                            }
                        }
                    }
                }
            }
            tracks.append(found)
        }
    }
}
