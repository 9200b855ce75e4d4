import MediaFiles
import NIOCore
import Signaling
import Wire

/// The bytes of an archive: the file of a composed one, or the ZIP file of an individual one, which is computed from its files.
struct ArchiveContent: Sendable {
    /// Where the bytes come from.
    private enum Source {
        /// A file in the archive's folder.
        case file(String, size: UInt64)
        /// The computed ZIP file, with its first member.
        case zip(ZIPFile, manifest: [UInt8])
    }

    private let archive: ArchiveRecord
    private let files: ArchiveFiles
    private let source: Source

    /// In bytes.
    var size: UInt64 {
        switch source {
        case .file(_, let size): size
        case .zip(let zip, _): zip.size
        }
    }

    /// - Parameter onlySize: whether the checksums in the ZIP file may be missing, because its content is not read.
    /// - Throws: an error if a file cannot be read.
    init(_ archive: ArchiveRecord, _ files: ArchiveFiles, onlySize: Bool = false) async throws {
        (self.archive, self.files) = (archive, files)
        if let composed = archive.composed {
            source = .file(composed.name, size: UInt64(clamping: composed.size))
            return
        }
        let manifest = ArchiveManifest(archive).json
        let checksums = onlySize ? archive.files.map { _ in 0 } : try await files.checksums(of: archive)
        source = .zip(archive.zipFile(manifest, checksums), manifest: manifest)
    }

    /// Reads a range in pieces of at most ``ArchiveFiles/chunkSize``.
    func read(_ range: Range<UInt64>, _ take: (ByteBuffer) async throws -> Void) async throws {
        for (name, part) in parts(in: range) {
            switch part {
            case .bytes(let bytes): try await take(ByteBuffer(bytes: bytes))
            case .content(_, let range):
                var offset = range.lowerBound
                while offset < range.upperBound {
                    let buffer = try await files.read(
                        name, of: archive.id, at: offset, range.upperBound - offset)
                    try await take(buffer)
                    offset += UInt64(buffer.readableBytes)
                }
            }
        }
    }

    /// The parts of this range, each with the name of its file; empty for bytes.
    private func parts(in range: Range<UInt64>) -> [(String, ZIPFile.Piece)] {
        switch source {
        case .file(let name, _): [(name, .content(0, range))]
        case .zip(let zip, let manifest):
            zip.pieces(in: range).map { piece in
                guard case .content(let index, let range) = piece else { return ("", piece) }
                // The manifest is the first member.
                guard index > 0 else {
                    return ("", .bytes(Array(manifest[Int(range.lowerBound)..<Int(range.upperBound)])))
                }
                return (archive.files[index - 1].name, piece)
            }
        }
    }
}

extension ArchiveRecord {
    /// The ZIP file of an individual archive: the manifest, then the files.
    func zipFile(_ manifest: [UInt8], _ checksums: [UInt32]) -> ZIPFile {
        let first = ZIPFile.Member(
            name: "\(id).json", size: UInt64(manifest.count), checksum: CRC32.of(manifest))
        let others = Swift.zip(files, checksums).map { file, checksum in
            ZIPFile.Member(name: file.name, size: UInt64(clamping: file.size), checksum: checksum)
        }
        return ZIPFile([first] + others, at: createdAt.milliseconds / 1000)
    }
}
