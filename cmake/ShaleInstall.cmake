# Installing, and packages: libshale with its headers, the `shale` command, and what lets CMake and
# pkg-config find them.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(SHALE_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/shale)

install(TARGETS shale EXPORT shale_targets INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY include/shale DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN *.hpp)
install(EXPORT shale_targets NAMESPACE shale:: FILE shaleTargets.cmake DESTINATION ${SHALE_CMAKE_DIR})
if(SHALE_TOOLS)
  install(TARGETS shale_command)
  if(BUILD_SHARED_LIBS)
    # The command finds libshale beside it, wherever the installation lies.
    file(RELATIVE_PATH SHALE_BIN_TO_LIB ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
    set_target_properties(shale_command PROPERTIES INSTALL_RPATH "$ORIGIN/${SHALE_BIN_TO_LIB}")
  endif()
endif()

configure_package_config_file(cmake/shaleConfig.cmake.in shaleConfig.cmake
                              INSTALL_DESTINATION ${SHALE_CMAKE_DIR})
# Before 1.0 every minor version may change the interface.
write_basic_package_version_file(shaleConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/shaleConfig.cmake ${PROJECT_BINARY_DIR}/shaleConfigVersion.cmake
        DESTINATION ${SHALE_CMAKE_DIR})

# A shared libshale brings its dependencies along; a static one names them to its users.
if(NOT BUILD_SHARED_LIBS)
  set(SHALE_PC_REQUIRES "Requires: tbb fmt libzstd liblz4 libxxhash libhwy-contrib zlib")
  set(SHALE_PC_PRIVATE "${OPENBLAS_SERIAL_LIBRARY} ${SLEEF_LIBRARY} -pthread")
endif()
# Relative, so that an installation may be moved.
file(RELATIVE_PATH SHALE_PC_TO_PREFIX ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
foreach(folder IN ITEMS LIBDIR INCLUDEDIR)
  if(IS_ABSOLUTE "${CMAKE_INSTALL_${folder}}")
    set(SHALE_PC_${folder} "${CMAKE_INSTALL_${folder}}")
  else()
    set(SHALE_PC_${folder} "\${prefix}/${CMAKE_INSTALL_${folder}}")
  endif()
endforeach()
configure_file(cmake/shale.pc.in shale.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/shale.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME shale)
set(CPACK_PACKAGE_CONTACT "The Shale developers <shale@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)  # what the command needs to run
if(NOT BUILD_SHARED_LIBS)
  # What users of a static libshale need (shaleConfig.cmake, shale.pc), by the names of Debian 12.
  set(CPACK_DEBIAN_PACKAGE_DEPENDS
      libboost-dev libfmt-dev libhwy-dev liblz4-dev libopenblas-serial-dev libtbb-dev libxxhash-dev
      libzstd-dev pkg-config zlib1g-dev)
  if(SLEEF_LIBRARY)
    list(APPEND CPACK_DEBIAN_PACKAGE_DEPENDS libsleef-dev)
  endif()
  list(JOIN CPACK_DEBIAN_PACKAGE_DEPENDS ", " CPACK_DEBIAN_PACKAGE_DEPENDS)
endif()
set(CPACK_STRIP_FILES ON)
include(CPack)
