import Foundation
import SwiftUI
import UIKit
import Vision
import VisionKit

/// Reads a QR code with the camera.
struct CodeScanner: UIViewControllerRepresentable {
    let found: @MainActor ([String]) -> Void
    /// Called when the scanner cannot start.
    let failed: @MainActor () -> Void

    func makeUIViewController(context: Context) -> DataScannerViewController {
        let scanner = DataScannerViewController(recognizedDataTypes: [.barcode(symbologies: [.qr])])
        scanner.delegate = context.coordinator
        return scanner
    }

    func updateUIViewController(_ scanner: DataScannerViewController, context: Context) {
        guard !scanner.isScanning else { return }
        do {
            try scanner.startScanning()
        } catch {
            // Report the failure asynchronously, because a view that is being updated must not change the model.
            Task { [failed] in failed() }
        }
    }

    static func dismantleUIViewController(_ scanner: DataScannerViewController, coordinator: Reader) {
        scanner.stopScanning()
    }

    func makeCoordinator() -> Reader { Reader(found) }

    /// Receives the codes that the camera recognizes.
    @MainActor final class Reader {
        fileprivate let found: @MainActor ([String]) -> Void

        init(_ found: @escaping @MainActor ([String]) -> Void) { self.found = found }
    }
}

extension CodeScanner.Reader: DataScannerViewControllerDelegate {
    func dataScanner(
        _ dataScanner: DataScannerViewController, didAdd addedItems: [RecognizedItem], allItems: [RecognizedItem]
    ) {
        found(addedItems.compactMap(\.codeText))
    }
}

extension RecognizedItem {
    /// The text of a QR code. Nil for other items, and for codes that contain no text.
    fileprivate var codeText: String? { if case .barcode(let code) = self { code.payloadStringValue } else { nil } }
}
